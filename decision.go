package weir

import (
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Decision is the answer to one request. Its zero value holds no answer.
type Decision struct {
	// Allowed reports whether the action may happen. A take has then counted
	// it. Only a check and a take can be denied.
	Allowed bool

	// Outcome is what to tell the caller: "allow", "deny", or an outcome that
	// the rules define.
	Outcome string

	// Rule is the name of the rule that set the outcome: the first rule that
	// denies, otherwise the first verdict. It is empty when no rule set it, also
	// if the request is denied because no rule matched.
	Rule string

	// RetryAfter is the longest of the waits of the rules that deny, and
	// RetryRule is the name of the rule with that wait, which can differ from
	// Rule. RetryAfter is 0 when the action is allowed, and [window.Never] when
	// waiting does not help. A rule that denies because of its outage policy
	// has a wait of one second or, if there was no room for the key, until the first key
	// may expire.
	RetryAfter time.Duration
	RetryRule  string

	// Usages holds the numbers of every limit, trigger and counter that matched,
	// in the order of the rules. It lacks the rules that an outage policy
	// decided without numbers. The rules after the first verdict are in it and
	// decide nothing.
	Usages []Usage

	// Verdicts holds the names of the verdicts that matched, in the order of the
	// rules, without those in shadow mode. The first one sets the outcome if no
	// limit before it denies.
	Verdicts []string

	// Triggered holds the names of the rules that report: triggers whose window holds at
	// least their number of hits, with [rule.Rule.Once] only in the call that reaches the
	// number, and limits whose count reaches [rule.Rule.Near] in this call. A refund
	// triggers nothing.
	Triggered []string

	// Unmatched reports whether no rule matched the request. The outcome is then
	// that of [rule.Set.WithUnmatched], and Rule is empty.
	Unmatched bool

	// Receipt names a take that was admitted and holds hits, so that they can be
	// settled, cancelled or renewed. It is zero for any other request.
	Receipt Receipt

	// Hold is the length of the shortest of the holds that Receipt names. They end
	// by themselves unless they are renewed or settled within it. It is 0 if Receipt
	// is zero.
	Hold time.Duration

	// Replayed reports whether this is the answer to an earlier request with the same
	// [Request.IdempotencyKey], so that this request has counted nothing.
	Replayed bool

	// Degraded reports whether the store could not answer for some rule, so that
	// the rule's outage policy decided instead.
	Degraded bool

	// DegradedReason is the reason of the first outage that this decision met,
	// such as "late" over Redis. It is empty if Degraded is false.
	DegradedReason store.Reason

	// Rules is the rule set that decided. SetRules may have replaced it since. It is
	// nil in an answer that came over the network.
	Rules *rule.Set
}

// reset empties d and keeps the memory of its slices.
func (d *Decision) reset() {
	d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, "", "", 0, ""
	d.Usages, d.Verdicts, d.Triggered = d.Usages[:0], d.Verdicts[:0], d.Triggered[:0]
	d.Receipt, d.Hold, d.Unmatched, d.Replayed, d.Degraded, d.DegradedReason, d.Rules = Receipt{}, 0, false, false, false, "", nil
}

// foundHold reports whether some rule of d has found a hold.
func (d *Decision) foundHold() bool {
	for i := range d.Usages {
		if d.Usages[i].Held {
			return true
		}
	}
	return false
}

// Usage holds the numbers of one rule for one key.
type Usage struct {
	// Rule and Kind are the rule's name and kind.
	Rule string
	Kind rule.Kind

	// Key is the rule's key for the request in readable form: the value of the
	// only attribute in `per`, or name=value pairs for several. For a limiter it
	// is the key.
	Key string

	// Shadow reports whether the rule is in shadow mode.
	Shadow bool

	// Hits is what the request costs under this rule: its hits, the sum, or the
	// hits that the rule states for a feedback. It is 0 where the rule only
	// evaluates: after a verdict that denies, in a record under a limit on what is in
	// flight, and in an answer of Usage.
	Hits int64

	// BannedUntil is the end of the ban of a key that is banned, and otherwise 0.
	BannedUntil window.Instant

	// Overridden reports whether the key has a quota of its own in the service, instead of the
	// rule's.
	Overridden bool

	// Result holds the numbers. Its Allowed is the answer of this rule only. Its
	// Held reports whether a take holds hits in this rule, and whether a settle, a
	// cancel or a renewal found the hold. In a degraded Decision, a hold that was not found may be in the store.
	window.Result
}
