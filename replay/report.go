package replay

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Report holds what the rules did with the requests of a replay. Its JSON form is
// the output of `weir replay --json`; some fields are not in it.
type Report struct {
	// Lines is the number of lines read. Bad is the number of lines among them
	// that were skipped.
	Lines int64 `json:"lines"`
	Bad   int64 `json:"bad"`

	// Rules has a tally for each rule, in the order of the rules.
	Rules []Tally `json:"rules"`

	// BadLines has the first bad lines.
	BadLines []BadLine `json:"-"`

	// Degraded is the number of requests that met a rule with no room in memory for
	// another key ([rule.Rule.MaxKeys]). The rule's outage policy decided them, and
	// the rule's numbers do not include them.
	Degraded int64 `json:"-"`
}

// Tally holds the numbers of one rule.
type Tally struct {
	// Name is the name of the rule.
	Name string `json:"name"`

	// Matched is the number of requests that matched the rule: the sum of Allowed
	// and Denied. Denied is the number of those that exceeded the rule's limit,
	// even if an earlier rule decided them or the rule is in shadow mode. For a
	// verdict, Matched is the number of requests that it decided.
	Matched int64 `json:"matched"`
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`

	// Decided is the number of requests for which this rule set the outcome.
	Decided int64 `json:"decided"`

	// Keys is the number of different keys of the requests that matched. Keys are
	// compared by 64-bit hashes, so a key can be missed: with a million keys, in
	// one of 37 million replays.
	Keys int64 `json:"keys"`

	// TopDenied has the keys with the most denied requests, most first. Keys with
	// the same number are in alphabetical order.
	TopDenied []DeniedKey `json:"top_denied"`

	// FirstDenied and LastDenied are the earliest and the latest time of a denied
	// request. They are zero if there is none.
	FirstDenied time.Time `json:"-"`
	LastDenied  time.Time `json:"-"`
}

// DeniedKey is a key in readable form, and the number of its denied requests.
type DeniedKey struct {
	Key    string `json:"key"`
	Denied int64  `json:"denied"`
}

// BadLine is a line that was skipped.
type BadLine struct {
	Log     string
	Line    int64 // number of the line, from 1 in each log
	Problem string
	Text    string // the start of the line
}

// String returns "log:line: problem: start of the line".
func (b BadLine) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", b.Log, b.Line, b.Problem, printable(b.Text))
}

const excerptLength = 100 // bytes

// excerpt returns the start of a text, cut between characters.
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
