package envoyrls

import (
	"context"
	"errors"
	"slices"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/urlpath"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// decide decides a call by weir's rules. Descriptors that take are one decision.
// Descriptors with no hits are checks, and those with negative hits are refunds.
// If a check is denied, nothing is taken. A descriptor with a value that the rules cannot use, because
// it is too long or not the number that they need, is denied, and then nothing is counted at all. So are descriptors
// that have more counters than the engine decides at a time.
func (a *API) decide(ctx context.Context, x *exchange) error {
	x.begin(len(x.in.descriptors))
	for i := range x.in.descriptors {
		if err := a.plan(x, i, &x.in.descriptors[i]); err != nil {
			return err
		}
	}
	var allowed bool
	var err error
	if !x.refused {
		allowed, err = x.count(ctx)
	}
	switch {
	case errors.Is(err, errDenied): // takes are not counted, but the answer has their statuses
		err = x.evaluate(ctx, x.takes)
	case x.refused || isFault(err): // nothing is
		if err = x.evaluate(ctx, x.others); err == nil {
			err = x.evaluate(ctx, x.takes)
		}
	}
	if err != nil {
		return err
	}
	for i := range x.others {
		x.answers[x.otherOf[i]].decision = &x.others[i].Decision
	}
	for i := range x.takes {
		x.answers[x.takeOf[i]].decision = &x.takes[i].Decision
	}
	x.out.OverallCode = codeOf(allowed)
	for i := range x.answers {
		x.answers[i].fill()
	}
	return a.addExtras(x)
}

// errDenied is the error of descriptors of which a check is denied.
var errDenied = errors.New("a check is denied")

// count decides the takes and the others. If it returns a fault, which is one of a value, nothing was counted.
func (x *exchange) count(ctx context.Context) (allowed bool, err error) {
	others := func() error {
		if len(x.others) == 0 {
			return nil
		}
		allowed, err := x.run(ctx, x.others, false, nil)
		if err == nil && !allowed {
			err = errDenied
		}
		return err
	}
	if len(x.takes) == 0 || !slices.ContainsFunc(x.others, func(it weir.Item) bool { return it.Verb == store.Refund }) {
		err, others = others(), nil
	}
	if err != nil || len(x.takes) == 0 {
		return err == nil, err
	}
	return x.run(ctx, x.takes, true, others) // which can have faults: refunds count after these are known
}

// evaluate checks items, each by itself. Those with a fault are denied.
func (x *exchange) evaluate(ctx context.Context, items []weir.Item) error {
	if len(items) == 0 {
		return nil
	}
	for i := range items {
		items[i].Verb = store.Check
	}
	if _, err := x.namespace.Run(ctx, items, run.Options{Admit: x.reserve}); err != nil && !isFault(err) {
		return err
	}
	for i := range items {
		it := &items[i]
		if isFault(it.Err) {
			it.Decision, it.Err = x.denial(), nil
		}
	}
	return firstError(items)
}

// denial returns the decision about a descriptor that no rule can decide.
func (x *exchange) denial() weir.Decision {
	return weir.Decision{Outcome: rule.Deny, Rules: x.namespace.Engine().Rules(), RetryAfter: window.Never}
}

// isFault reports whether err is about a value that rules cannot use.
func isFault(err error) bool {
	_, is := errors.AsType[*fault.Fault](err)
	return is
}

// run decides items, as one action or each by itself. It returns the first error; if that is a fault in one of them, nothing
// was counted. before, if it is not nil, is called once they are known to have none, and before they count; its error is returned.
func (x *exchange) run(ctx context.Context, items []weir.Item, together bool, before func() error) (allowed bool, err error) {
	o := run.Options{Together: together, Admit: func(s run.Size) error {
		err := firstError(items)
		if err == nil {
			err = x.reserve(s)
		}
		if err == nil && before != nil {
			err = before()
		}
		return err
	}}
	if allowed, err = x.namespace.Run(ctx, items, o); err == nil {
		err = firstError(items)
	}
	return allowed, err
}

// firstError returns the first error of items, or nil.
func firstError(items []weir.Item) error {
	for i := range items {
		if err := items[i].Err; err != nil {
			return err
		}
	}
	return nil
}

// shorten leaves out the long values of d that no rule uses. It reports whether there are others.
func (x *exchange) shorten(d *descriptor) (others bool) {
	rules := x.namespace.Engine().Rules().Compiled()
	d.entries = slices.DeleteFunc(d.entries, func(e weir.Attribute) bool {
		if len(e.Value) <= maxValue {
			return false
		}
		_, used := rules.Attribute(e.Name)
		used = used || d.limit != nil
		others = others || used
		return !used
	})
	return others
}

// plan adds the request of descriptor i.
func (a *API) plan(x *exchange, i int, d *descriptor) error {
	if x.shorten(d) {
		denial := x.denial()
		x.refused, x.answers[i].decision = true, &denial
		return nil
	}
	hits, check := hitsOf(&x.in, d)
	it := weir.Item{Request: weir.Request{Hits: hits}}
	domain := weir.Attribute{Name: domainAttribute, Value: x.in.domain}
	if d.limit == nil {
		it.Request.Attributes = urlpath.InAttributes(append(d.entries, domain))
	} else {
		o, err := overrideOf(i, d.limit)
		if err != nil {
			return err
		}
		if it.Request.Rules, err = a.overrides.rules(x.namespace, i, o, o.native); err != nil {
			return err
		}
		it.Request.Attributes = []weir.Attribute{{Name: descriptorAttribute, Value: textOf(d.entries, nil)}, domain}
	}
	switch it.Verb = verbOf(d, check); it.Verb {
	case store.Take:
		x.takes, x.takeOf = append(x.takes, it), append(x.takeOf, i)
	default:
		x.others, x.otherOf = append(x.others, it), append(x.otherOf, i)
	}
	return nil
}

// verbOf returns what is asked about d.
func verbOf(d *descriptor, check bool) store.Verb {
	switch {
	case check:
		return store.Check
	case d.negative:
		return store.Refund
	}
	return store.Take
}

// need returns the scopes that a caller needs for r: refunds need more than takes and checks.
func (r *request) need() access.Scope {
	for i := range r.descriptors {
		d := &r.descriptors[i]
		if _, check := hitsOf(r, d); verbOf(d, check) == store.Refund {
			return access.Decide | access.Record
		}
	}
	return access.Decide
}

// domainAttribute is the attribute that has the domain of a call. An entry with
// this key does not replace it.
const domainAttribute = "domain"

func codeOf(allowed bool) rls.RateLimitResponse_Code {
	if allowed {
		return rls.RateLimitResponse_OK
	}
	return rls.RateLimitResponse_OVER_LIMIT
}
