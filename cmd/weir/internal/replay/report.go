package replay

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Report holds what the rules did with the requests of a replay. Its JSON form is
// the output of `weir replay --json`.
type Report struct {
	// Lines is the number of lines read. Bad is the number of lines among them
	// that were skipped.
	Lines int64 `json:"lines"`
	Bad   int64 `json:"bad"`

	// Skipped is the number of lines about something else than requests, in a log that has
	// such lines. They are not among Lines.
	Skipped int64 `json:"skipped,omitzero"`

	// Requests is the number of requests, from From to To: the sum of Allowed and
	// Denied. Outcomes has the number of requests by their outcome, and Unmatched
	// is the number of those that no rule matched.
	Requests  int64            `json:"requests"`
	Allowed   int64            `json:"allowed"`
	Denied    int64            `json:"denied"`
	Unmatched int64            `json:"unmatched"`
	Outcomes  map[string]int64 `json:"outcomes"`
	From      time.Time        `json:"from,omitzero"`
	To        time.Time        `json:"to,omitzero"`

	// Records is the number of lines that report an action after it has happened, such as an
	// update of koala's. Rules count them and do not decide them, so they are not among the
	// requests.
	Records int64 `json:"records,omitzero"`

	// Ends is the number of refunds, settles, cancels and renewals, which are not among the requests either.
	Ends int64 `json:"ends,omitzero"`

	// Degraded is the number of requests under a rule that had no memory left for
	// another key ([rule.Rule.MaxKeys]). The rule's outage policy decided them, and
	// the rule's numbers do not include them.
	Degraded int64 `json:"degraded"`

	// Rules has a tally for each rule, in the order of the rules.
	Rules []Tally `json:"rules"`

	// Timeline has all requests over time, in at most 512 buckets. Hours has them
	// in buckets of an hour, or longer ones if the log covers more than a year.
	// They are nil if there is no request.
	Timeline *Timeline `json:"timeline"`
	Hours    *Timeline `json:"hours"`

	// Missing has the attributes that the rules use and that no request has, such as
	// a field whose name is wrong.
	Missing []string `json:"missing,omitempty"`

	// BadLines has the first bad lines.
	BadLines []BadLine `json:"bad_lines"`
}

// Read returns the number of lines, of the bad ones among them, the first of these, and the number of
// skipped lines.
func (r *Report) Read() (lines, bad int64, first []BadLine, skipped int64) {
	return r.Lines, r.Bad, r.BadLines, r.Skipped
}

// Tally holds the numbers of one rule.
type Tally struct {
	// Name, Kind and Mode are those of the rule, as rules files write them.
	Name string `json:"name"`
	Kind string `json:"kind"`
	Mode string `json:"mode"`

	// Matched is the number of requests that matched the rule: the sum of Allowed
	// and Denied. Denied is the number of those that exceeded the rule's limit,
	// even if an earlier rule decided them, the rule is in shadow mode, or it counts
	// behind a verdict, whatever its limit. For a verdict, Matched is the number of requests that it decided.
	Matched int64 `json:"matched"`
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`

	// Decided is the number of requests for which this rule set the outcome.
	Decided int64 `json:"decided"`

	// Shadowed is the number of requests that exceeded the limit of a rule in
	// shadow mode. Triggered is the number of requests for which a trigger
	// reported. Banned is the number of denied requests whose key was banned, and
	// Held the number of requests that hold hits. A replay never settles: holds
	// run out.
	Shadowed  int64 `json:"shadowed"`
	Triggered int64 `json:"triggered"`
	Banned    int64 `json:"banned"`
	Held      int64 `json:"held"`

	// Alone is the number of requests that a limit would deny if no other limit
	// denied any. MaskedBy has the rules that denied some of these requests
	// before this rule's limit was exceeded. Both are nil without [WithAlone], and
	// for rules that are not limits.
	Alone    *int64 `json:"alone,omitempty"`
	MaskedBy []Mask `json:"masked_by,omitempty"`

	// Keys is the number of different keys of the requests that matched, and
	// KeysDenied the number of those with a denied request. Keys are compared by
	// 64-bit hashes, so a key can be missed: with a million keys, in one of 37
	// million replays.
	Keys       int64 `json:"keys"`
	KeysDenied int64 `json:"keys_denied"`

	// TopDenied has the keys with the most denied requests, most first. Keys with
	// the same number are in alphabetical order.
	TopDenied []DeniedKey `json:"top_denied"`

	// FirstDenied and LastDenied are the earliest and the latest time of a denied
	// request. They are nil if there is none.
	FirstDenied *time.Time `json:"first_denied,omitempty"`
	LastDenied  *time.Time `json:"last_denied,omitempty"`

	// Timeline has the requests that matched over time, in at most 512 buckets.
	// Denied requests are those that exceeded the rule's limit.
	Timeline *Timeline `json:"timeline,omitempty"`

	// Peaks describes the peaks of the keys of a limit. It is nil without
	// [WithPeaks], and for rules that are not limits.
	Peaks *Distribution `json:"peaks,omitempty"`
}

// Mask is a rule that denied requests before another rule could deny them.
type Mask struct {
	Rule   string `json:"rule"`
	Denied int64  `json:"denied"`
}

// DeniedKey is a key in readable form, the number of its denied requests, and the
// earliest and the latest time of one.
type DeniedKey struct {
	Key    string    `json:"key"`
	Denied int64     `json:"denied"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// BadLine is a line that was skipped.
type BadLine struct {
	Log     string `json:"log"`
	Line    int64  `json:"line"` // number of the line, from 1 in each log
	Problem string `json:"problem"`
	Text    string `json:"text"` // the start of the line
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
