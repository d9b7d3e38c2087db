package envoyrls

import (
	"context"

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
	allowed := true
	var err error
	if len(x.others) > 0 {
		if allowed, err = x.run(ctx, x.others, false); err != nil {
			return err
		}
		for i := range x.others {
			x.answers[x.otherOf[i]].decision = &x.others[i].Decision
		}
	}
	if len(x.takes) > 0 {
		if !allowed { // takes are not counted, but the answer has their statuses
			for i := range x.takes {
				x.takes[i].Verb = store.Check
			}
			if _, err := x.run(ctx, x.takes, false); err != nil {
				return err
			}
		} else if allowed, err = x.run(ctx, x.takes, true); err != nil {
			return err
		}
		for i := range x.takes {
			x.answers[x.takeOf[i]].decision = &x.takes[i].Decision
		}
	}
	x.out.OverallCode = codeOf(allowed)
	for i := range x.answers {
		x.answers[i].fill()
	}
	return a.addExtras(x)
}

// run decides items, as one action or each by itself. It returns the first error.
func (x *exchange) run(ctx context.Context, items []weir.Item, together bool) (allowed bool, err error) {
	allowed, err = x.namespace.Engine().Run(ctx, items, run.Options{Together: together, MaxSize: x.namespace.MaxAnswer(), Admit: x.reserve})
	for i := range items {
		if err == nil {
			err = items[i].Err
		}
	}
	return allowed, err
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
