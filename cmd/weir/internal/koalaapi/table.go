package koalaapi

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// table holds the answers of a set of rules, encoded once. It is immutable.
type table struct {
	set    *rule.Set
	rows   fallback // of a browse
	multi  fallback // of a multi/browse
	byRule [][]byte // the row of each rule, by index in set
}

// fallback holds the rows of requests that no rule decides.
type fallback struct {
	none   []byte // no rule matched
	within []byte // rules matched, and none was over its limit
}

// newTable returns the table of set.
func newTable(set *rule.Set) *table {
	none, within := rowOf(set, koalafile.OutcomeName(rowNone)), rowOf(set, koalafile.OutcomeName(rowWithin))
	t := &table{
		set:    set,
		rows:   fallback{none.appendTo(nil), within.appendTo(nil)},
		byRule: make([][]byte, set.Len()),
	}
	none.RetCode, within.RetCode = 0, 0 // as koala has it
	t.multi = fallback{none.appendTo(nil), within.appendTo(nil)}
	rows := map[string]row{}
	for i := range t.byRule {
		r := set.Rule(i)
		outcome := cmp.Or(r.Then, rule.Deny)
		if _, known := rows[outcome]; !known {
			rows[outcome] = rowOf(set, outcome)
		}
		t.byRule[i] = rows[outcome].by(r.Code).appendTo(nil)
	}
	return t
}

// answer returns the row for a decision of t's rules: a rule's, or one of f.
func (t *table) answer(d *weir.Decision, f fallback) []byte {
	switch i, ok := t.set.Find(d.Rule); {
	case ok:
		return t.byRule[i]
	case len(d.Usages)+len(d.Verdicts) > 0, d.Degraded: // a degraded rule has matched
		return f.within
	}
	return f.none
}

// over returns the indexes, in the rules' order, of the verdicts of a decision and of
// the limits that the request is over. It skips rules in shadow mode, triggers and
// counters.
func (t *table) over(d *weir.Decision) (all []int) {
	for _, name := range d.Verdicts {
		i, _ := t.set.Find(name)
		all = append(all, i)
	}
	first := len(t.byRule) // the first verdict
	if len(all) > 0 {
		first = all[0]
	}
	for n := range d.Usages {
		u := &d.Usages[n]
		if u.Kind != rule.KindLimit || u.Shadow {
			continue
		}
		if i, _ := t.set.Find(u.Rule); !u.Allowed || first < i && t.wasOver(i, u, d.Allowed) {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// wasOver reports whether rule i, which follows a verdict, was over its limit before the request.
// Such a rule denies nothing: an allowed take counts in it past its limit, and a denied take does
// not count.
func (t *table) wasOver(i int, u *weir.Usage, counted bool) bool {
	switch {
	case u.Quota == window.Unlimited:
		return false
	case counted && t.set.Rule(i).After.Count > 0 && u.Used == u.Before:
		return false // the limit does not apply yet
	}
	return u.Before >= u.Quota
}
