package replay

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Report is what rules did to the requests of a replay. As JSON it is what
// `weir replay --json` prints; what only people read is not in it.
type Report struct {
	// Lines were read; Bad ones among them were passed over.
	Lines int64 `json:"lines"`
	Bad   int64 `json:"bad"`

	// Rules are in the order of the rules.
	Rules []Tally `json:"rules"`

	// BadLines are the first of the bad lines.
	BadLines []BadLine `json:"-"`

	// Degraded requests found the memory for keys full. What a rule's policy
	// for outages decided in its place is not in the rule's numbers.
	Degraded int64 `json:"-"`
}

// Tally is what one rule did.
type Tally struct {
	// Name is the rule's.
	Name string `json:"name"`

	// Matched is Allowed and Denied together. Denied requests found this rule
	// over its limit, and may have been decided by an earlier one; a shadow
	// rule has them too. A rule that decides at once matches those that it
	// decided.
	Matched int64 `json:"matched"`
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`

	// Decided requests were given this rule's outcome.
	Decided int64 `json:"decided"`

	// Keys is how many different keys matched. They are told apart by 64-bit
	// hashes: of a million keys, one may be missed once in 37 million replays.
	Keys int64 `json:"keys"`

	// TopDenied are the keys with most denied requests, most first; of equal
	// ones the lesser key first.
	TopDenied []DeniedKey `json:"top_denied"`

	// FirstDenied and LastDenied are the earliest and the latest instant of
	// denied requests; zero when there are none.
	FirstDenied time.Time `json:"-"`
	LastDenied  time.Time `json:"-"`
}

// DeniedKey is a key as a person would read it, and how often it was denied.
type DeniedKey struct {
	Key    string `json:"key"`
	Denied int64  `json:"denied"`
}

// BadLine is a line that was passed over.
type BadLine struct {
	Log     string
	Line    int64 // counted from 1 in each log
	Problem string
	Text    string // the start of it
}

// String is log:line: problem: the start of the line.
func (b BadLine) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", b.Log, b.Line, b.Problem, printable(b.Text))
}

const excerptLength = 100 // bytes

// excerpt is the start of a text, cut between characters.
func excerpt(text string) string {
	if len(text) <= excerptLength {
		return text
	}
	end := excerptLength
	for end > excerptLength-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
