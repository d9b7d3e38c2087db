package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// quick decides requests that match a few rules without holds, bans, CountDenied and
// verdicts, in memory. These are most requests of most programs. They need no ops, no outage
// policy and no memory but that of the Decision: quick looks on the stack which rules
// match, asks the store about their keys, and has the store write its numbers into the
// Decision. That takes half of the time of the general way. FuzzQuick compares the two.
type quick struct {
	store   *memstore.Store // nil: nothing is decided quickly
	maxSize int64           // as of the engine
}

// isPlain reports whether r, with verb, is a valid check, take or record.
func (r *Request) isPlain(verb Verb) bool {
	// Receipt.IsZero copies the receipt, which costs 2 ns.
	return verb <= Record && r.Hits >= 0 && r.Feedback == "" && r.Receipt.ID == window.HoldID{}
}

// progress is how far a request has come.
type progress uint8

const (
	begun    progress = iota // nothing was done
	filled                   // values has the request's
	admitted                 // so has it, and the size of the decision was admitted
	decided                  // the decision, or the error, is the answer
)

// decide decides r, whose decision d is empty. If r needs the general way, d stays
// empty, and err is nil, or the store's answer. values is empty.
func (q *quick) decide(ctx context.Context, rules *plan.Rules, verb Verb, r *Request, values *rule.Narrow, d *Decision, admit func(Size) error) (progress, error) {
	if q.store == nil || !rules.IsNarrow() || !r.isPlain(verb) {
		return begun, nil
	}
	r.fill(values, rules.Attributes())
	rules.Complete(values[:])
	var room [rule.FewRules]int32
	found, ok := rules.Found(values, &room)
	if !ok {
		return q.search(ctx, rules, values, verb, r, d, admit)
	}
	if len(found) != 1 || !rules.Prepared(int(found[0])).Alone {
		return q.some(ctx, rules, found, values, verb, r, d, admit)
	}
	i := int(found[0])
	// What follows is not a function of its own: the call would cost 5 of 110 ns.
	p := rules.Prepared(i)
	var keyRoom keyRoom
	key, readable := rules.Keys(keyRoom[:0], i, values)
	if key == nil {
		return filled, nil
	}
	if q.maxSize > 0 || admit != nil {
		s := Size{Usages: 1, Text: int64(len(p.Name) + rules.KeyLen(i, values[:]))}
		if err := s.admitted(q.maxSize, admit); err != nil {
			return decided, err
		}
	}
	if cap(d.Usages) == 0 {
		d.Usages = make([]Usage, 1)
	}
	d.Usages = d.Usages[:1]
	u := &d.Usages[0]
	n := r.cost()
	if err := q.store.OneKey(ctx, &u.Result, verb, p.Space, p.Limit, key, n); err != nil {
		d.Usages = d.Usages[:0]
		return admitted, err
	}
	u.Rule, u.Kind, u.Key, u.Shadow, u.Hits, u.BannedUntil = p.Name, p.Kind, readable, p.Shadow, n, 0
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	if !u.Allowed && verb != Record && !p.Shadow {
		d.Allowed, d.Outcome, d.Rule = false, p.Outcome, p.Name
		d.RetryAfter, d.RetryRule = u.RetryAfter, p.Name
	}
	return decided, nil
}

// keyRoom is the memory of a key on the stack. A request with a longer key needs the
// general way.
type keyRoom [64]byte

// cost returns the hits of r, which is plain.
func (r *Request) cost() int64 { return min(max(r.Hits, 1), window.MaxHits+1) }

// search decides r as some does. It finds the rules where [rule.Set.Found] did not.
func (q *quick) search(ctx context.Context, rules *plan.Rules, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error) (progress, error) {
	var room [memstore.MostFew]int32
	return q.some(ctx, rules, match(rules, values, room[:0]), values, verb, r, d, admit)
}

// match appends the rules that match values to dst.
func match(rules *plan.Rules, values *rule.Narrow, dst []int32) []int32 {
	var room [memstore.MostFew]int
	for _, i := range rules.Match(values[:rules.Width()], room[:0]) {
		dst = append(dst, int32(i))
	}
	return dst
}

// some decides r by the rules that match values, if they are few and need nothing but
// their limits.
func (q *quick) some(ctx context.Context, rules *plan.Rules, matched []int32, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error) (progress, error) {
	if len(matched) > memstore.UsualFew {
		return q.many(ctx, rules, matched, values, verb, r, d, admit)
	}
	var places [memstore.UsualFew]memstore.Place
	return q.several(ctx, rules, matched, values, verb, r, d, admit, places[:])
}

// many does what some does. It is apart so that calls with few rules need not clear its
// places.
//
//go:noinline
func (q *quick) many(ctx context.Context, rules *plan.Rules, matched []int32, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error) (progress, error) {
	var places [memstore.MostFew]memstore.Place
	return q.several(ctx, rules, matched, values, verb, r, d, admit, places[:])
}

// several decides r by the rules that match values. places is memory for as many ops, or
// for as many as can be decided.
func (q *quick) several(ctx context.Context, rules *plan.Rules, matched []int32, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error, places []memstore.Place) (progress, error) {
	if len(matched) == 0 || len(matched) > memstore.MostFew {
		return filled, nil
	}
	for _, i := range matched {
		if !rules.Prepared(int(i)).Few {
			return filled, nil
		}
	}
	d.Usages = slices.Grow(d.Usages, len(matched))[:len(matched)]
	var hash memstore.KeyHash
	before := int32(-2)
	for k, i := range matched {
		p, u := rules.Prepared(int(i)), &d.Usages[k]
		limit, hits := p.Limit, window.Hits{N: r.cost()}
		if limit == nil && !q.rare(rules, int(i), values, &limit, &hits) {
			d.Usages = d.Usages[:0]
			return filled, nil
		}
		if p.SameKey && before == i-1 {
			u.Key = d.Usages[k-1].Key
		} else {
			var room keyRoom
			var key []byte
			if key, u.Key = rules.Keys(room[:0], int(i), values); key == nil {
				d.Usages = d.Usages[:0]
				return filled, nil
			}
			hash = q.store.Hash(key)
		}
		before = i
		u.Rule, u.Kind, u.Shadow, u.Hits, u.BannedUntil = p.Name, p.Kind, p.Shadow, hits.N, 0
		q.store.Place(&places[k], p.Space, limit, p.Role, hash, hits, &u.Result)
	}
	if q.maxSize > 0 || admit != nil {
		s := Size{Usages: len(matched)}
		for _, i := range matched {
			s.Text += int64(len(rules.Prepared(int(i)).Name) + rules.KeyLen(int(i), values[:]))
		}
		if err := s.admitted(q.maxSize, admit); err != nil {
			d.Usages = d.Usages[:0]
			return decided, err
		}
	}
	if done, err := q.store.Few(ctx, verb, places[:len(matched)]); !done || err != nil {
		d.Usages = d.Usages[:0]
		return admitted, err
	}
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	for k, i := range matched {
		u := &d.Usages[k]
		switch {
		case u.Kind == rule.KindTrigger:
			if fired(rules.Rule(int(i)), verb, &u.Result) {
				d.Triggered = append(d.Triggered, u.Rule)
			}
		case !u.Allowed && verb != Record:
			p := rules.Prepared(int(i))
			if p.Role != store.Enforce {
				continue
			}
			if d.Allowed {
				d.Allowed, d.Outcome, d.Rule = false, p.Outcome, p.Name
			}
			d.waits(u.RetryAfter, p.Name)
		}
	}
	return decided, nil
}

// rare sets the limit and the hits of an op for rule i, which does not count hits under
// one limit. It reports false if the request has not what the rule counts.
func (q *quick) rare(rules *plan.Rules, i int, values *rule.Narrow, limit **window.Compiled, hits *window.Hits) bool {
	*limit = rules.LimitOf(i, values[:])
	switch rules.Prepared(i).Measure {
	case window.Sum:
		n, err := rules.Sum(i, values[:])
		if err != nil {
			return false
		}
		hits.N = n
	case window.Distinct:
		hits.Member = q.store.Member(rules.Member(i, values[:]))
	}
	return true
}
