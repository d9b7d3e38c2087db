package weir

import (
	"context"

	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// laid are the places for several requests. Its zero value is empty.
type laid struct {
	places  [memstore.MostFew]memstore.Place
	matched [memstore.MostFew]int32       // the rule of each place
	rules   [memstore.MostFew]*plan.Rules // of each request
	n       int                           // of places
	size    Size                          // of the decisions
}

// together decides items as [Engine.TakeTogether] does, if quick can decide each of them
// and all of them together match few rules. It reports false if the general way has to
// decide; then nothing was counted. byDefault are the rules of requests without their
// own. l is empty before and after the call. FuzzTogether compares the two ways.
func (q *quick) together(ctx context.Context, e *Engine, byDefault *plan.Rules, items []Item, admit func(Size) error, l *laid) (done, allowed bool, err error) {
	if q.store == nil || len(items) > memstore.MostFew {
		return false, false, nil
	}
	if q.layAll(e, byDefault, items, l) {
		done, allowed, err = q.takeLaid(ctx, items, admit, l)
	}
	clear(l.places[:l.n])
	clear(l.rules[:len(items)])
	l.n, l.size = 0, Size{}
	return done, allowed, err
}

// layAll lays all items, and reports whether there are places, and no item needs the
// general way.
func (q *quick) layAll(e *Engine, byDefault *plan.Rules, items []Item, l *laid) bool {
	for k := range items {
		r, d := &items[k].Request, &items[k].Decision
		rules := byDefault
		if r.Rules != nil {
			rules = e.prepared(r.Rules)
		}
		d.reset()
		d.Rules, l.rules[k] = rules.Set, rules
		if !q.lay(rules, r, d, l) {
			return false
		}
	}
	return l.n > 0
}

// lay adds the places for the rules that r matches, and makes the usages of d. It reports
// false if r needs the general way, or if there is no room for the places.
func (q *quick) lay(rules *plan.Rules, r *Request, d *Decision, l *laid) bool {
	if !rules.IsNarrow() || !r.isPlain(Take) {
		return false
	}
	var values rule.Narrow
	r.fill(&values, rules.Attributes())
	rules.Complete(values[:])
	var room [rule.FewRules]int32
	matched, ok := rules.Found(&values, &room)
	if !ok {
		matched = match(rules, &values, room[:0])
	}
	places := l.places[l.n:]
	if len(matched) > len(places) {
		return false
	}
	if len(matched) == 0 {
		_, allows := rules.Set.Unmatched()
		return allows
	}
	copy(l.matched[l.n:], matched)
	l.n += len(matched) // which are cleared, whether they are set or not
	l.size.addRules(rules, matched, &values)
	return q.place(rules, matched, &values, r, d, places)
}

// takeLaid decides the items, which were laid.
func (q *quick) takeLaid(ctx context.Context, items []Item, admit func(Size) error, l *laid) (done, allowed bool, err error) {
	if q.maxSize > 0 || admit != nil {
		if err := l.size.admitted(q.maxSize, admit); err != nil {
			return true, false, err
		}
	}
	allowed, done, err = q.store.Few(ctx, store.Take, l.places[:l.n])
	if !done || err != nil {
		return done, false, err
	}
	matched := l.matched[:l.n]
	for k := range items {
		d, rules := &items[k].Decision, l.rules[k]
		d.Allowed, d.Outcome = true, rule.Allow
		n := len(d.Usages)
		switch {
		case n == 0:
			unmatched(d, true)
		case !allowed || rules.Triggers():
			d.outcome(rules, matched[:n], Take)
		}
		matched = matched[n:]
	}
	return true, allowed, nil
}
