package remote

// Level is the severity of a [Finding].
type Level string

// The levels of findings, from good to bad.
const (
	LevelOK      Level = "ok"
	LevelUnknown Level = "unknown" // the server does not show it, or not to this user
	LevelWarn    Level = "warn"    // it works, and something can go wrong
	LevelRefuse  Level = "refuse"  // limits would not hold, or nothing would be counted
)

// Finding is the result of one check of a server.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Node  string `json:"node"`            // the server's address
	Seen  string `json:"seen"`            // what the server answered
	Means string `json:"means,omitempty"` // what follows for limits
	Fix   string `json:"fix,omitempty"`   // what to do about it
}

// String returns the finding on one line, without level, node and name.
func (f Finding) String() string {
	text := f.Seen
	if f.Means != "" {
		text += ": " + f.Means
	}
	if f.Fix != "" {
		text += "; fix: " + f.Fix
	}
	return text
}
