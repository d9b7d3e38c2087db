// Package rule defines rules: which requests a rule matches, which keys get
// separate counters, and what happens over the limit. [New] compiles a list of
// rules into a [Set], which finds the rules that match a request. The package is
// pure: it has no clock, no lock and no IO.
package rule

import (
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/window"
)

// Rule is one entry of a rules file. The fields that are set determine its
// [Kind]: with Quota it is a limit, with Trigger a trigger, with Then but neither
// of the two a verdict, and with none of the three a counter. [New] refuses fields
// that the kind does not have.
//
// The identity of a rule consists of its Name, Per, Networks, Measure and Of, and of
// the [window.Window.ID] of its window and of the window of After. A rule keeps its
// counters when anything else changes.
type Rule struct {
	// Name identifies the rule. It is required, and no two rules of a set have
	// the same one.
	Name string

	// When lists the conditions, which must all hold. A missing attribute
	// counts as an empty one.
	When []Condition

	// Per names the attributes whose values make the key: each combination of
	// values has its own counter. If Per is empty, the rule has one counter.
	Per []string

	// Networks groups the addresses in attributes of Per: addresses that share
	// their first bits have one counter. Attributes without an entry count whole.
	Networks map[string]Network

	// Together names one of the attributes in Per. A store of several nodes
	// keeps the keys that have the same value of this attribute on one node, so
	// that all rules with the same Together are decided there in one step. If it
	// is empty, the keys are spread over the nodes.
	Together string

	// Measure is what the rule counts: hits, the sum of an attribute, or the
	// distinct values of an attribute. Of names that attribute; it is empty when
	// the rule counts hits.
	Measure window.Measure
	Of      string

	Quota   *Quota // what a limit admits; nil: the rule is not a limit
	Trigger int64  // the number from which a trigger reports; 0: the rule is not a trigger
	Once    bool   // the trigger reports only when its number is reached, not above it

	// Near makes a limit report when the hits that it has counted reach this percentage of
	// the quota; 0 means that it does not. See [Rule.Reports].
	Near int

	// Window is the window that the rule counts in. After is the condition under
	// which a limit starts. A counter replaces a sliding window by a cells window
	// of the same length.
	Window window.Window
	After  window.After

	// Then names the outcome of a verdict, or of a request over a limit. If it
	// is empty, the outcome of a limit is "deny".
	Then string

	// Code is the rule's number for clients that know rules by number, such
	// as koala's; 0 means none. It does not change what the rule counts.
	Code int64

	// CountRest makes the rules after this verdict match and decide nothing: they count
	// each record and each take that is allowed, even past their quotas. Otherwise they
	// do not match. It is for verdicts.
	CountRest bool

	// Feedback maps the name of an event to the hits that a refund for this
	// event gives back to the rule, regardless of the cost of the request:
	// {"solved": 2}. [window.All] gives back everything, with the strikes and the
	// ban of the key. A refund for an event that is not in the map does not
	// change the rule's counter.
	Feedback map[string]int64

	// Hold is how long a take holds its hits, unless the hold is settled,
	// cancelled or renewed before; 0 means that takes do not hold. With Release a
	// hold that ends by itself counts nothing any more. MaxHolds is the highest
	// number of holds of a key, also in a held window; 0 means the default. See
	// [window.Limit].
	Hold     time.Duration
	Release  bool
	MaxHolds int

	// Ban states for how long keys that go over the limit are banned. The zero
	// value means no ban.
	Ban window.Ban

	// Mode states whether the rule decides. OnOutage states how it answers
	// when the store cannot.
	Mode     Mode
	OnOutage Outage

	// CountDenied makes a limit count requests that are denied, by this rule or
	// by another.
	CountDenied bool

	// MaxKeys is the most keys of the rule that a store in memory keeps. 0 means
	// the store's default.
	MaxKeys int64

	// Export makes stores keep what an export of the rule's keys needs
	// ([window.Limit.Export]).
	Export bool

	// Lease lets processes spend parts of the rule's quotas from their memory
	// ([window.Limit.Lease]).
	Lease int64
}

// Quota is how much a rule admits: one number, one number for each value of an
// attribute, or the number that a request has in an attribute.
type Quota struct {
	Value int64 // the quota, when By and Of are empty

	// By names an attribute, and Cases holds the quota for each of its values.
	By    string
	Cases map[string]int64

	// Of names an attribute whose value is the quota, so callers must be trusted with
	// it. The value is a whole number from 0 on; any other is an error of the request.
	// Most, which is required then, is the highest quota: larger values count as Most.
	// The state of a key has the size and the precision that Most needs, whatever the
	// quota of the request.
	Of   string
	Most int64

	// Else is the quota for every other value of By, and for requests without the
	// attribute By or Of. If Else is nil, the rule does not match such requests.
	Else *int64
}

// Attribute returns the name of the attribute that the quota depends on, By or Of. It is
// empty if the quota is one number.
func (q *Quota) Attribute() string {
	if q.By != "" {
		return q.By
	}
	return q.Of
}

// Highest returns the largest quota that a request can have.
func (q *Quota) Highest() int64 {
	if q.Attribute() == "" {
		return q.Value
	}
	most := q.Most
	for _, n := range q.Cases {
		most = max(most, n)
	}
	if q.Else != nil {
		most = max(most, *q.Else)
	}
	return most
}

// caseNames returns the values with a separate quota, sorted.
func (q *Quota) caseNames() []string { return slices.Sorted(maps.Keys(q.Cases)) }

// Kind is the kind of a rule.
type Kind uint8

const (
	KindLimit   Kind = iota // admits requests up to a quota, and denies the others
	KindTrigger             // counts and never denies; reports when it has counted a number
	KindCounter             // counts and never denies
	KindVerdict             // sets an outcome and counts nothing
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

// Reports reports whether r, a trigger or a limit with Near, reports in the decision of a
// call with this result. A trigger does as long as its window holds at least its number, and
// with Once only in the call that reaches the number. A limit does in the call that raises its
// count to Near percent of the quota or over it, and not in shadow mode.
func (r *Rule) Reports(res *window.Result) bool {
	switch {
	case r.Trigger > 0:
		return res.Used >= r.Trigger && (!r.Once || res.Before < r.Trigger)
	case r.Near > 0 && r.Mode == Enforce && res.Quota != window.Unlimited:
		from := (res.Quota*int64(r.Near) + 99) / 100
		return res.Used >= from && res.Before < from
	}
	return false
}

// Holds reports whether takes hold hits under r: r has Hold, or its window is held.
func (r *Rule) Holds() bool { return r.Hold > 0 || r.Window.Kind == window.KindHeld }

// Mode states whether a rule decides.
type Mode uint8

const (
	Enforce Mode = iota // the rule decides
	Shadow              // the rule counts what it would admit, and never decides
	Off                 // the rule is skipped
)

var modeNames = [...]string{"enforce", "shadow", "off"}

// String returns the mode as rules files write it.
func (m Mode) String() string { return name(modeNames[:], int(m)) }

// Outage states how a rule answers when the store cannot.
type Outage uint8

const (
	OutageLocal Outage = iota // a store in this process's memory decides; without one the rule denies
	OutageAllow               // the rule allows
	OutageDeny                // the rule denies
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
	// Allow and Deny are the names of the predefined outcomes.
	Allow = "allow"
	Deny  = "deny"
)

// Outcome is an outcome that a rules file defines: whether the request may
// happen, and the answer over HTTP.
type Outcome struct {
	// Allow reports whether the request may happen. Only a verdict can have an
	// outcome that allows.
	Allow bool

	Status int    // HTTP status: below 400 if Allow is set (0 means 200), otherwise from 300 (0 means 429)
	Body   []byte // JSON; may be empty
}

// Condition is one test on one attribute.
type Condition struct {
	Attribute string
	Test      Test

	// Trim removes white space around the value before the test. The rule then
	// uses the trimmed value everywhere: in its key, sum, members and quota.
	Trim bool
}

// Test is a predicate on the value of an attribute. A missing attribute has the
// value "". A Test must be immutable and safe for concurrent use.
type Test interface {
	// Holds reports whether value passes the test.
	Holds(value string) bool
	// String returns the test as an explanation shows it, such as
	// "is a" or "is one of [a b]". The text starts with "is ".
	String() string
}
