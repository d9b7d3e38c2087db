// Package rule defines rules: which requests a rule matches, which keys get
// separate counters, and what happens over the limit. A [Set] is a compiled,
// immutable list of rules that finds the rules which match a request. The
// package is pure: it has no clock, no lock and no IO.
package rule

import (
	"github.com/weirhq/weir/window"
)

// Rule is one entry of a rules file. Its kind follows from the fields that are
// set: a Quota makes it a limit, a Trigger makes it a trigger, a Then without
// both makes it a verdict, and without any of the three it is a counter. See
// [Rule.Kind].
type Rule struct {
	Name string

	// When lists the conditions, which must all hold. A missing attribute
	// counts as an empty one.
	When []Condition

	// Per names the attributes whose values make the key: each combination of
	// values has its own counter. Without any the rule has one counter.
	Per []string

	// Together names one of Per. In a store of several nodes, keys with the
	// same value of this attribute are on one node, so that rules which share
	// it decide in one step. Empty: keys are spread over the nodes.
	Together string

	// Measure is what the rule counts: hits, a sum or distinct values. Of names
	// the attribute that is summed, or whose distinct values are counted.
	Measure window.Measure
	Of      string

	Quota   *Quota
	Trigger int64 // number at which a trigger reports; 0: not a trigger
	Once    bool  // the trigger reports only the hit that reaches its number

	Window window.Window
	After  window.After

	// Then is the outcome of a limit that is exceeded, and of a verdict. Empty
	// means "deny" for a limit.
	Then string

	// Code is the rule's number for clients that know rules by number, such
	// as koala's; 0 means none. It does not change what the rule counts.
	Code int64

	// Rest states whether the rules behind a verdict still count.
	Rest Rest

	// Feedback states how many hits a refund with each of these names gives
	// back to the rule, whatever the request costs: {"solved": 2}. A refund
	// with another name does not change the rule's counter.
	Feedback map[string]int64

	Mode        Mode
	OnOutage    Outage
	CountDenied bool

	// MaxKeys is the maximum number of keys in memory; 0 means the store's
	// default.
	MaxKeys int64
}

// Quota is how much a rule admits: one number, or one number for each value of
// an attribute.
type Quota struct {
	Value int64 // when By is empty

	// By names an attribute, and Cases holds the quotas by its value. Else is the
	// quota for every other value; nil means that the rule does not match then.
	By    string
	Cases map[string]int64
	Else  *int64
}

// Kind is the kind of a rule.
type Kind uint8

const (
	KindLimit   Kind = iota // admits requests up to a quota
	KindTrigger             // always counts, and reports from a number on
	KindCounter             // always counts
	KindVerdict             // decides at once and counts nothing
)

var kindNames = [...]string{"limit", "trigger", "counter", "verdict"}

// String returns the name of the kind: limit, trigger, counter or verdict.
func (k Kind) String() string { return name(kindNames[:], int(k)) }

// Kind returns the kind of r.
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

// Mode states whether a rule decides.
type Mode uint8

const (
	Enforce Mode = iota // decides
	Shadow              // is evaluated, with counters of its own, and never decides
	Off                 // is skipped
)

var modeNames = [...]string{"enforce", "shadow", "off"}

// String returns the mode as rules files write it.
func (m Mode) String() string { return name(modeNames[:], int(m)) }

// Rest states what happens to the rules behind a verdict that matches.
type Rest uint8

const (
	RestSkip Rest = iota // they are skipped
	// RestCount lets them match without a say in the decision. A record counts
	// in them, and so does a take that is allowed, even past their quotas.
	RestCount
)

var restNames = [...]string{"skip", "count"}

// String returns the value as rules files write it.
func (r Rest) String() string { return name(restNames[:], int(r)) }

// Outage states how a rule answers while the store cannot.
type Outage uint8

const (
	OutageLocal Outage = iota // counts in this process's memory
	OutageAllow               // allows
	OutageDeny                // denies
)

var outageNames = [...]string{"local", "allow", "deny"}

// String returns the policy as rules files write it.
func (o Outage) String() string { return name(outageNames[:], int(o)) }

// name returns names[i], or "unknown" when i is out of range.
func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

const (
	// Allow and Deny are the predefined outcomes.
	Allow = "allow"
	Deny  = "deny"
)

// Outcome is an outcome that a rules file defines: whether it allows, and how
// it looks in an HTTP answer.
type Outcome struct {
	// Allow reports whether the request may happen. Only verdicts can have such
	// an outcome.
	Allow bool

	Status int    // HTTP status; 0 means 429, or 200 for one that allows
	Body   []byte // JSON, may be empty
}

// Condition is one test on one attribute.
type Condition struct {
	Attribute string
	Test      Test

	// Trim removes blanks around the value before the test. The key then uses
	// the trimmed value, too.
	Trim bool
}

// Test is a predicate on an attribute's value; a missing attribute has the
// value "". Tests are immutable and safe for concurrent use.
type Test interface {
	// Holds reports whether value passes the test.
	Holds(value string) bool
	// String returns the test as an explanation shows it, such as
	// "is one of [a b]". The text starts with "is ".
	String() string
}
