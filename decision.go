package weir

import (
	"iter"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Decision is the answer to one request. It carries everything that a header
// or a screen needs. Its zero value holds no answer.
type Decision struct {
	// Allowed reports whether the action may happen and, in a take, was
	// counted.
	Allowed bool

	// Outcome is what to tell the caller: "allow", "deny", or an outcome that
	// the rules define.
	Outcome string

	// Rule is the name of the rule that gave the outcome: the first one over
	// its quota, or the verdict that decided. Empty when no rule did.
	Rule string

	// RetryAfter is the longest wait that a rule over its quota asks for;
	// [window.Never] when waiting does not help, 0 when allowed. RetryRule is
	// the name of the rule that asks for it; it can be another one than Rule.
	RetryAfter time.Duration
	RetryRule  string

	// Usages are the numbers of every rule that counts and matched, in the
	// rules' order. Those behind the first verdict decide nothing. See Limits,
	// Triggers and Counters.
	Usages []Usage

	// Verdicts are the verdict rules that matched, in the rules' order, without
	// those in shadow mode. The first one decides if no limit before
	// it denies.
	Verdicts []string

	// Triggered are the triggers whose window holds at least their number.
	Triggered []string

	// Degraded reports whether a store could not answer, so that the rules'
	// policies for outages decided in its place.
	Degraded bool

	// DegradedReason is why the store could not answer, the first time in this
	// decision: [store.ReasonLate] and so on. Empty when not Degraded.
	DegradedReason store.Reason

	// Rules are the rules that decided. Others may be in force by now.
	Rules *rule.Set
}

// Limits returns the usages of limits, in the rules' order.
func (d *Decision) Limits() iter.Seq[*Usage] { return d.of(rule.KindLimit) }

// Triggers returns the usages of triggers, in the rules' order.
func (d *Decision) Triggers() iter.Seq[*Usage] { return d.of(rule.KindTrigger) }

// Counters returns the usages of counters, in the rules' order.
func (d *Decision) Counters() iter.Seq[*Usage] { return d.of(rule.KindCounter) }

func (d *Decision) of(kind rule.Kind) iter.Seq[*Usage] {
	return func(yield func(*Usage) bool) {
		for i := range d.Usages {
			if u := &d.Usages[i]; u.Kind == kind && !yield(u) {
				return
			}
		}
	}
}

// reset empties d and keeps the memory of its slices.
func (d *Decision) reset() {
	d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, "", "", 0, ""
	d.Usages, d.Verdicts, d.Triggered = d.Usages[:0], d.Verdicts[:0], d.Triggered[:0]
	d.Degraded, d.DegradedReason, d.Rules = false, "", nil
}

// Usage is one rule's numbers for one key.
type Usage struct {
	// Rule and Kind are the rule's name and what it does.
	Rule string
	Kind rule.Kind

	// Key is the rule's key for the request as a person reads it: the value of
	// the one attribute in `per`, or name=value pairs for several.
	Key string

	// Shadow reports whether the rule is in shadow mode.
	Shadow bool

	// Result are the numbers.
	window.Result
}
