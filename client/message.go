package client

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Resource limits of the service.
const (
	maxMessage    = 1 << 20 // bytes of a message
	maxBatch      = 1000    // requests of a batch
	maxAttributes = 64      // of a request
	maxValue      = 1 << 10 // bytes of the value of an attribute
)

// verbs are the verbs of the API.
var verbs = [...]weirv1.Verb{
	store.Take: weirv1.Verb_VERB_TAKE, store.Check: weirv1.Verb_VERB_CHECK, store.Record: weirv1.Verb_VERB_RECORD, store.Refund: weirv1.Verb_VERB_REFUND,
	store.Settle: weirv1.Verb_VERB_SETTLE, store.Cancel: weirv1.Verb_VERB_CANCEL, store.Renew: weirv1.Verb_VERB_RENEW,
}

// setRequest sets all fields of m to those of r. It reuses the map of m. It returns the encoded size
// of m in bytes, or slightly more.
func setRequest(m *weirv1.Request, verb store.Verb, r *weir.Request) (size int) {
	if m.Attributes == nil {
		m.Attributes = make(map[string]string, len(r.Attributes))
	}
	clear(m.Attributes)
	setAttributes(m.Attributes, r.Attributes)
	m.Hits, m.Feedback, m.Receipt, m.Final, m.Verb = nil, r.Feedback, "", r.Final, verbs[verb]
	if r.Hits != 0 {
		hits := r.Hits // a copy, because the caller may return before the message is written
		m.Hits = &hits
	}
	if !r.Receipt.IsZero() {
		m.Receipt = r.Receipt.String()
	}
	if m.IdempotencyKey, m.IdempotencyFor = r.IdempotencyKey, nil; r.IdempotencyFor != 0 {
		m.IdempotencyFor = durationpb.New(r.IdempotencyFor)
	}
	const fields, entry = 64, 16 // tags, lengths and numbers
	size = fields + len(m.Feedback) + len(m.Receipt) + len(m.IdempotencyKey)
	for name, value := range m.Attributes {
		size += entry + len(name) + len(value)
	}
	return size
}

// attributesOf returns attributes as a map.
func attributesOf(list []weir.Attribute) map[string]string {
	m := make(map[string]string, len(list))
	setAttributes(m, list)
	return m
}

// setAttributes adds a list of attributes to m. As in an engine, the last of several attributes with
// the same name counts, and one without a name is ignored.
func setAttributes(m map[string]string, list []weir.Attribute) {
	for i := range list {
		if a := &list[i]; a.Name != "" {
			m[a.Name] = a.Value
		}
	}
}

// empty empties d, and keeps the memory of its slices.
func empty(d *weir.Decision) {
	*d = weir.Decision{Usages: d.Usages[:0], Verdicts: d.Verdicts[:0], Triggered: d.Triggered[:0]}
}

// readDecision sets d, which is empty, to m, and reuses the slices of d. Rules of d is nil. After an error d is empty.
func readDecision(m *weirv1.Decision, d *weir.Decision) (err error) {
	if m.GetOutcome() == "" { // every decision has one
		return errors.New("an answer without a decision")
	}
	var r receipt.Receipt
	if m.Receipt != "" {
		if r, err = receipt.Parse(m.Receipt); err != nil {
			return err
		}
	}
	*d = weir.Decision{
		Allowed: m.Allowed, Outcome: m.Outcome, Rule: m.Rule, RetryAfter: durationOf(m.RetryAfter), RetryRule: m.RetryRule,
		Usages: slices.Grow(d.Usages, len(m.Limits)), Verdicts: append(d.Verdicts, m.Verdicts...), Triggered: append(d.Triggered, m.Triggered...),
		Unmatched: m.Unmatched, Replayed: m.Replayed, Degraded: m.Degraded, DegradedReason: store.Reason(m.DegradedReason), Hold: durationOf(m.Hold), Receipt: r,
	}
	for _, u := range m.Limits {
		d.Usages = append(d.Usages, usageOf(u))
	}
	return nil
}

func usageOf(m *weirv1.RuleUsage) weir.Usage {
	u := weir.Usage{Rule: m.GetRule(), Kind: kindOf(m.GetKind()), Key: m.GetKey(), Shadow: m.GetShadow(), Hits: m.GetHits(), Overridden: m.GetOverride()}
	u.Result = window.Result{
		Allowed: m.GetAllowed(), Held: m.GetHeld(), Banned: m.GetBanned(), Struck: m.GetStruck(),
		Quota: window.Unlimited, Used: m.GetUsed(), Before: m.GetBefore(), Remaining: window.Unlimited,
		RetryAfter: durationOf(m.GetRetryAfter()), ResetAfter: durationOf(m.GetResetAfter()),
	}
	if m != nil && m.Quota != nil {
		u.Quota = *m.Quota
	}
	if m != nil && m.Remaining != nil {
		u.Remaining = *m.Remaining
	}
	if at := m.GetBannedUntil(); at != nil {
		u.BannedUntil = window.At(at.AsTime())
	}
	return u
}

// kindOf returns a kind of rules. A kind of a later version has no name.
func kindOf(k weirv1.RuleKind) rule.Kind { return rule.Kind(k - weirv1.RuleKind_RULE_KIND_LIMIT) } //nolint:gosec // small

// durationOf returns d, in which -1 seconds mean [window.Never].
func durationOf(d *durationpb.Duration) time.Duration {
	switch {
	case d == nil:
		return 0
	case d.Seconds == -1 && d.Nanos == 0:
		return window.Never
	}
	return d.AsDuration()
}
