// Package rule says when a limit applies, per what key, and what happens over
// it. A [Set] is a compiled, immutable list of rules that finds the ones which
// match a request. It is pure: no clock, no lock, no IO.
package rule

import (
	"github.com/weirhq/weir/window"
)

// Rule is one entry of a rules file. What it does follows from what is set:
// a Quota makes it a limit, a Trigger a trigger, a Then without both decides
// at once, and none of the three makes it a counter. See [Rule.Kind].
type Rule struct {
	Name string

	// When must all hold. An attribute that is missing is the same as one
	// that is empty.
	When []Condition

	// Per are the attributes whose values make the key. None: one key.
	Per []string

	// Together names one of Per: on a store of several nodes the keys that
	// have the same value of it are on one node, and the rules that meet there
	// decide in one step. Empty: each key is where it falls.
	Together string

	// Measure is what is counted. Of names the attribute that is summed, or
	// whose distinct values are counted.
	Measure window.Measure
	Of      string

	Quota   *Quota
	Trigger int64 // report when the window holds this much; 0: not a trigger
	Once    bool  // report a trigger on the crossing only

	Window window.Window
	After  window.After

	// Then is the outcome over the quota; empty means "deny".
	Then string

	// Rest is what becomes of the rules behind a verdict.
	Rest Rest

	// Feedback is how many hits a refund with each of these names gives back
	// to the rule, whatever the request costs: {"solved": 2}. A refund with
	// another name leaves the rule alone.
	Feedback map[string]int64

	Mode        Mode
	OnOutage    Outage
	CountDenied bool

	// MaxKeys bounds the keys in memory; 0 means the store's default.
	MaxKeys int64
}

// Quota is how much a rule admits: one number, or one by an attribute.
type Quota struct {
	Value int64 // when By is empty

	// By names an attribute; Cases are the quotas by its value. Else is for
	// every other value; nil means that the rule does not match then.
	By    string
	Cases map[string]int64
	Else  *int64
}

// Kind is what a rule does.
type Kind uint8

const (
	KindLimit   Kind = iota // admits up to a quota
	KindTrigger             // counts always and reports
	KindCounter             // counts always
	KindVerdict             // decides at once, counts nothing
)

var kindNames = [...]string{"limit", "trigger", "counter", "verdict"}

// String is the kind in a word.
func (k Kind) String() string { return name(kindNames[:], int(k)) }

// Kind says what r does.
func (r *Rule) Kind() Kind {
	switch {
	case r.Quota != nil:
		return KindLimit
	case r.Trigger > 0:
		return KindTrigger
	case r.Then != "":
		return KindVerdict
	}
	return KindCounter
}

// Mode says whether a rule decides.
type Mode uint8

const (
	Enforce Mode = iota // decides
	Shadow              // evaluated and counted apart, never decides
	Off                 // skipped
)

var modeNames = [...]string{"enforce", "shadow", "off"}

// String is the mode as rules files write it.
func (m Mode) String() string { return name(modeNames[:], int(m)) }

// Rest says what becomes of the rules behind a verdict that matches.
type Rest uint8

const (
	RestSkip Rest = iota // they do not match
	// RestCount has them match and decide nothing. A record counts in them, and
	// so does a take that is allowed, past their quotas too.
	RestCount
)

var restNames = [...]string{"skip", "count"}

// String is the word for it in a rules file.
func (r Rest) String() string { return name(restNames[:], int(r)) }

// Outage says what a rule answers when its store cannot.
type Outage uint8

const (
	OutageLocal Outage = iota // this process's memory decides
	OutageAllow
	OutageDeny
)

var outageNames = [...]string{"local", "allow", "deny"}

// String is the policy as rules files write it.
func (o Outage) String() string { return name(outageNames[:], int(o)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

const (
	// Allow and Deny are the outcomes that need no definition.
	Allow = "allow"
	Deny  = "deny"
)

// Outcome is how an HTTP answer shows an outcome that a rules file defines.
type Outcome struct {
	// Allow says that the request may happen: an outcome for verdicts only.
	Allow bool

	Status int    // HTTP status; 0 means 429, or 200 for one that allows
	Body   []byte // JSON, may be empty
}

// Condition is one test on one attribute.
type Condition struct {
	Attribute string
	Test      Test

	// Trim cuts blanks around the value before the test, and in the key too.
	Trim bool
}

// Test holds or does not hold for an attribute's value; a missing attribute
// has the value "". Tests are immutable and safe for concurrent use.
type Test interface {
	Holds(value string) bool
	// String is the test as an explanation shows it, such as `is one of [a b]`.
	String() string
}
