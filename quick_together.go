package weir

import (
	"context"
	"slices"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// together decides items as [Engine.TakeTogether] does, if quick can decide each of them
// and all of them together match few rules. It reports false if the general way has to
// decide; then nothing was counted. byDefault are the rules of requests without their
// own. asks is room, which is empty before and after the call. FuzzTogether compares the
// two ways.
func (q *quick) together(ctx context.Context, e *Engine, byDefault *plan.Rules, items []Item, admit func(Size) error, asks *[memstore.MostAsks]memstore.Ask) (done, allowed bool, err error) {
	if q.store == nil || len(items) > memstore.MostAsks {
		return false, false, nil
	}
	defer clear(asks[:])
	var size Size
	n := 0
	for k := range items {
		r, d := &items[k].Request, &items[k].Decision
		rules := byDefault
		if r.Rules != nil {
			rules = e.prepared(r.Rules)
		}
		d.reset()
		d.Rules = rules.Set
		more, ok := q.ask(rules, r, d, asks[n:], &size)
		if !ok {
			return false, false, nil
		}
		n += more
	}
	if n == 0 {
		return false, false, nil
	}
	if q.maxSize > 0 || admit != nil {
		if err := size.admitted(q.maxSize, admit); err != nil {
			return true, false, err
		}
	}
	if done, err := q.store.Several(ctx, store.Take, asks[:n]); !done || err != nil {
		return done, false, err
	}
	allowed = true
	for k := range items {
		items[k].Decision.quickly()
		allowed = allowed && items[k].Decision.Allowed
	}
	return true, allowed, nil
}

// ask adds the asks for the rules that r matches, and makes the usages of d, to which the
// store writes its numbers. It reports false if r needs the general way, or if asks has
// no room.
func (q *quick) ask(rules *plan.Rules, r *Request, d *Decision, asks []memstore.Ask, size *Size) (n int, ok bool) {
	if !rules.IsNarrow() || !r.isPlain(Take) {
		return 0, false
	}
	var values rule.Narrow
	r.fill(&values, rules.Attributes())
	rules.Complete(values[:])
	var room [rule.FewRules]int32
	matched, ok := rules.Found(&values, &room)
	if !ok {
		matched = match(rules, &values, room[:0])
	}
	if len(matched) > len(asks) {
		return 0, false
	}
	if len(matched) == 0 {
		_, allows := rules.Set.Unmatched()
		return 0, allows
	}
	d.Usages = slices.Grow(d.Usages, len(matched))[:len(matched)]
	for k := range matched {
		i := int(matched[k])
		p, a, u := rules.Prepared(i), &asks[k], &d.Usages[k]
		if !p.Few {
			return 0, false
		}
		a.Space, a.Limit, a.Role, a.Result, a.Hits.N = p.Space, p.Limit, p.Role, &u.Result, r.cost()
		if a.Limit == nil && !q.rare(rules, i, &values, &a.Limit, &a.Hits) {
			return 0, false
		}
		if k > 0 && p.SameKey && int(matched[k-1]) == i-1 {
			a.Key, u.Key = asks[k-1].Key, d.Usages[k-1].Key
		} else {
			var room keyRoom
			var key []byte
			if key, u.Key = rules.Keys(room[:0], i, &values); key == nil {
				return 0, false
			}
			a.Key = q.store.Hash(key)
		}
		u.Rule, u.Kind, u.Shadow, u.Hits, u.BannedUntil = p.Name, p.Kind, p.Shadow, a.Hits.N, 0
		size.Usages++
		size.Text += int64(len(p.Name) + rules.KeyLen(i, values[:]))
	}
	return len(matched), true
}

// quickly completes d, whose usages have the store's numbers of a take.
func (d *Decision) quickly() {
	d.Allowed, d.Outcome = true, rule.Allow
	if len(d.Usages) == 0 {
		unmatched(d, true)
		return
	}
	for k := range d.Usages {
		u := &d.Usages[k]
		switch {
		case u.Kind == rule.KindTrigger:
			if i, _ := d.Rules.Find(u.Rule); fired(d.Rules.Rule(i), Take, &u.Result) {
				d.Triggered = append(d.Triggered, u.Rule)
			}
		case !u.Allowed && u.Kind == rule.KindLimit && !u.Shadow:
			if d.Allowed {
				i, _ := d.Rules.Find(u.Rule)
				d.Allowed, d.Outcome, d.Rule = false, rule.Deny, u.Rule
				if then := d.Rules.Rule(i).Then; then != "" {
					d.Outcome = then
				}
			}
			d.waits(u.RetryAfter, u.Rule)
		}
	}
}
