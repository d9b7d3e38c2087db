package weir

import (
	"context"

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
		if len(found) > memstore.UsualFew {
			return q.many(ctx, rules, found, values, verb, r, d, admit)
		}
		return q.several(ctx, rules, found, values, verb, r, d, admit, nil)
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

// mostRules is the most rules that decide a request quickly. Places for more would take
// longer to clear than what they save.
const mostRules = 8

// keyRoom is the memory of a key on the stack. A request with a longer key needs the
// general way.
type keyRoom [64]byte

// cost returns the hits of r, which is plain.
func (r *Request) cost() int64 { return min(max(r.Hits, 1), window.MaxHits+1) }

// search decides r as many does. It finds the rules where [rule.Set.Found] did not.
func (q *quick) search(ctx context.Context, rules *plan.Rules, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error) (progress, error) {
	var room [mostRules]int32
	return q.many(ctx, rules, match(rules, values, room[:0]), values, verb, r, d, admit)
}

// match appends the rules that match values to dst.
func match(rules *plan.Rules, values *rule.Narrow, dst []int32) []int32 {
	var room [mostRules]int
	for _, i := range rules.Match(values[:rules.Width()], room[:0]) {
		dst = append(dst, int32(i))
	}
	return dst
}

// many does what several does with more rules.
//
//go:noinline
func (q *quick) many(ctx context.Context, rules *plan.Rules, matched []int32, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error) (progress, error) {
	if len(matched) <= memstore.UsualFew {
		return q.several(ctx, rules, matched, values, verb, r, d, admit, nil)
	}
	var places [mostRules]memstore.Place
	return q.several(ctx, rules, matched, values, verb, r, d, admit, places[:])
}

// several decides r by the rules that match values, if they are few and need nothing but
// their limits. places is memory for their ops, or nil if they are as few as most often.
func (q *quick) several(ctx context.Context, rules *plan.Rules, matched []int32, values *rule.Narrow, verb Verb, r *Request, d *Decision, admit func(Size) error, places []memstore.Place) (progress, error) {
	var few [memstore.UsualFew]memstore.Place
	if places == nil {
		places = few[:]
	}
	if len(matched) == 0 || len(matched) > len(places) {
		return filled, nil
	}
	places = places[:len(matched)]
	if !q.place(rules, matched, values, r, d, places) {
		d.Usages = d.Usages[:0]
		return filled, nil
	}
	if q.maxSize > 0 || admit != nil {
		var s Size
		s.addRules(rules, matched, values)
		if err := s.admitted(q.maxSize, admit); err != nil {
			d.Usages = d.Usages[:0]
			return decided, err
		}
	}
	allowed, done, err := q.store.Few(ctx, verb, places)
	if !done || err != nil {
		d.Usages = d.Usages[:0]
		return admitted, err
	}
	d.Allowed, d.Outcome, d.Rules = true, rule.Allow, rules.Set
	if !allowed || rules.Triggers() {
		d.outcome(rules, matched, verb)
	}
	return decided, nil
}

// outcome completes d, whose usages are those of the rules that matched. It is only
// needed if a rule denies or triggers.
func (d *Decision) outcome(rules *plan.Rules, matched []int32, verb Verb) {
	for k, i := range matched {
		p, u := rules.Prepared(int(i)), &d.Usages[k]
		switch {
		case p.Kind == rule.KindTrigger:
			if fired(rules.Rule(int(i)), verb, &u.Result) {
				d.Triggered = append(d.Triggered, p.Name)
			}
		case p.Role == store.Enforce && !u.Allowed && verb != Record:
			if d.Allowed {
				d.Allowed, d.Outcome, d.Rule = false, p.Outcome, p.Name
			}
			d.waits(u.RetryAfter, p.Name)
		}
	}
}

// place makes a usage of d and sets a place for each rule that matches values. It reports
// false if one of them needs the general way.
func (q *quick) place(rules *plan.Rules, matched []int32, values *rule.Narrow, r *Request, d *Decision, places []memstore.Place) bool {
	run := rules.Run(matched)
	if run == nil {
		for _, i := range matched {
			if !rules.Prepared(int(i)).Few {
				return false
			}
		}
	}
	if cap(d.Usages) < len(matched) {
		d.Usages = make([]Usage, len(matched))
	}
	d.Usages = d.Usages[:len(matched)]
	if run == nil {
		return q.placeEach(rules, matched, values, r, d.Usages, places)
	}
	var room keyRoom
	key, readable := rules.Keys(room[:0], int(matched[0]), values)
	if key == nil {
		return false
	}
	placeRun(run, d.Usages, places, readable, q.store.Hash(key), r.cost())
	return true
}

// placeRun makes the usages and sets the places of rules with the same key that need
// nothing else from the request. It takes half of the time of placeEach, as a function of its own: in a larger
// one the compiler keeps what the loop needs in memory.
//
//go:noinline
func placeRun(run []plan.Prepared, us []Usage, places []memstore.Place, key string, hash memstore.KeyHash, n int64) {
	us, places = us[:len(run)], places[:len(run)]
	for k := range run {
		p, u := &run[k], &us[k]
		u.Rule, u.Kind, u.Key, u.Shadow, u.Hits, u.BannedUntil = p.Name, p.Kind, key, p.Shadow, n, 0
		places[k].Set(p.Space, p.Limit, p.Role, hash, window.Hits{N: n}, &u.Result)
	}
}

// placeEach makes the usages and sets the places of other rules that are Few. It reports
// false if one of them needs the general way.
func (q *quick) placeEach(rules *plan.Rules, matched []int32, values *rule.Narrow, r *Request, us []Usage, places []memstore.Place) bool {
	var hash memstore.KeyHash
	before := int32(-2)
	for k, i := range matched {
		p, u := rules.Prepared(int(i)), &us[k]
		if p.SameKey && before == i-1 {
			u.Key = us[k-1].Key
		} else {
			var room keyRoom
			var key []byte
			if key, u.Key = rules.Keys(room[:0], int(i), values); key == nil {
				return false
			}
			hash = q.store.Hash(key)
		}
		before = i
		limit, hits := p.Limit, window.Hits{N: r.cost()}
		if limit == nil {
			var ok bool
			if limit, hits, ok = q.rare(rules, int(i), values, hits.N); !ok {
				return false
			}
		}
		u.Rule, u.Kind, u.Shadow, u.Hits, u.BannedUntil = p.Name, p.Kind, p.Shadow, hits.N, 0
		places[k].Set(p.Space, limit, p.Role, hash, hits, &u.Result)
	}
	return true
}

// rare returns the limit and the hits of an op for rule i, which does not count hits
// under one limit. n are the hits of the request. It reports false if the request has not
// what the rule counts.
func (q *quick) rare(rules *plan.Rules, i int, values *rule.Narrow, n int64) (limit *window.Compiled, hits window.Hits, ok bool) {
	limit, hits.N = rules.LimitOf(i, values[:]), n
	switch rules.Prepared(i).Measure {
	case window.Sum:
		n, err := rules.Sum(i, values[:])
		if err != nil {
			return nil, hits, false
		}
		hits.N = n
	case window.Distinct:
		hits.Member = q.store.Member(rules.Member(i, values[:]))
	}
	return limit, hits, true
}
