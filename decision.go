package weir

import (
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Decision is the answer to one request. It carries everything that a header
// or a screen needs.
type Decision struct {
	// Allowed says that the action may happen and, in a take, was counted.
	Allowed bool

	// Outcome is what to tell the caller: "allow", "deny", or an outcome that
	// the rules define.
	Outcome string

	// Rule is the name of the rule that gave the outcome: the first one over
	// its quota, or the one that decided at once. Empty when none did.
	Rule string

	// RetryAfter is the longest wait that a rule over its quota asks for;
	// [window.Never] when waiting will not help, 0 when allowed.
	RetryAfter time.Duration

	// Limits are the numbers of every rule that was asked, in the rules' order.
	// Those behind the first verdict decide nothing.
	Limits []Usage

	// Verdicts are the rules without limit that matched, in the rules' order,
	// without those that only watch. The first one decides where no limit
	// before it did.
	Verdicts []string

	// Triggered are the triggers whose window holds at least their number.
	Triggered []string

	// Degraded says that a store could not answer, and that the rules'
	// policies for outages decided in its place.
	Degraded bool

	// Rules are the rules that decided. Others may have replaced them since.
	Rules *rule.Set
}

// reset empties d and keeps the memory of its slices.
func (d *Decision) reset() {
	d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.Degraded, d.Rules = false, "", "", 0, false, nil
	d.Limits, d.Verdicts, d.Triggered = d.Limits[:0], d.Verdicts[:0], d.Triggered[:0]
}

// Usage is one rule's numbers for one key.
type Usage struct {
	// Rule and Kind are the rule's name and what it does.
	Rule string
	Kind rule.Kind

	// Key is the rule's key for the request as a person would read it: the
	// value of the one attribute in `per`, or name=value pairs for several.
	Key string

	// Shadow says that the rule only watches.
	Shadow bool

	// Result are the numbers.
	window.Result
}
