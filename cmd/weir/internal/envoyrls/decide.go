package envoyrls

import (
	"context"
	"errors"
	"slices"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// decide decides a call by weir's rules. Descriptors that take are one decision.
// Descriptors with no hits are checks, and those with negative hits are refunds.
// If a check is denied, nothing is taken.
func (a *API) decide(ctx context.Context, x *exchange) error {
	x.begin(len(x.in.descriptors))
	for i := range x.in.descriptors {
		if err := a.plan(x, i, &x.in.descriptors[i]); err != nil {
			return err
		}
	}
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
	var err error
	if len(x.takes) == 0 || !slices.ContainsFunc(x.others, func(it weir.Item) bool { return it.Verb == store.Refund }) {
		err, others = others(), nil
	}
	allowed := err == nil
	if allowed && len(x.takes) > 0 { // which can have faults: refunds count after these are known
		allowed, err = x.run(ctx, x.takes, true, others)
	}
	if errors.Is(err, errDenied) { // takes are not counted, but the answer has their statuses
		for i := range x.takes {
			x.takes[i].Verb, x.takes[i].Err = store.Check, nil
		}
		_, err = x.run(ctx, x.takes, false, nil)
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

// run decides items, as one action or each by itself. It returns the first error; if that is a fault in one of them, nothing
// was counted. before, if it is not nil, is called once they are known to have none, and before they count; its error is returned.
func (x *exchange) run(ctx context.Context, items []weir.Item, together bool, before func() error) (allowed bool, err error) {
	o := run.Options{Together: together, MaxSize: x.namespace.MaxAnswer(), Admit: func(s run.Size) error {
		err := firstError(items)
		if err == nil {
			err = x.reserve(s)
		}
		if err == nil && before != nil {
			err = before()
		}
		return err
	}}
	if allowed, err = x.namespace.Engine().Run(ctx, items, o); err == nil {
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

// plan adds the request of descriptor i.
func (a *API) plan(x *exchange, i int, d *descriptor) error {
	hits, check := hitsOf(&x.in, d)
	it := weir.Item{Request: weir.Request{Hits: hits}}
	domain := weir.Attribute{Name: domainAttribute, Value: x.in.domain}
	it.Request.Attributes = append(d.entries, domain)
	if d.limit != nil {
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
