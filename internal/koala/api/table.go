package api

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// table is what a set of rules answers, written once. It is immutable.
type table struct {
	set          *rule.Set
	none, within []byte // the rows for no match, and for none over
	lines        []line // by index in set
}

// line is what one rule answers.
type line struct {
	code int64 // its return code; 0: none
	kind int64 // the row's Ret_type
	row  []byte
}

// inForce is the table of the rules in force.
func (a *API) inForce() *table { return a.table(a.engine.Rules()) }

// table is the table of set.
func (a *API) table(set *rule.Set) *table {
	if t := a.current.Load(); t != nil && t.set == set {
		return t
	}
	a.making.Lock()
	defer a.making.Unlock()
	t := a.current.Load()
	if t == nil || t.set != set {
		t = newTable(set)
		a.current.Store(t)
	}
	return t
}

func newTable(set *rule.Set) *table {
	t := &table{
		set:    set,
		none:   rowOf(set, outcomeOf(rowNone)).appendTo(nil),
		within: rowOf(set, outcomeOf(rowWithin)).appendTo(nil),
		lines:  make([]line, set.Len()),
	}
	rows := map[string]row{}
	for i := range t.lines {
		r := set.Rule(i)
		outcome := r.Then
		if outcome == "" {
			outcome = rule.Deny
		}
		if _, known := rows[outcome]; !known {
			rows[outcome] = rowOf(set, outcome)
		}
		answer := rows[outcome].by(r.Code)
		t.lines[i] = line{code: r.Code, kind: answer.RetType, row: answer.appendTo(nil)}
	}
	return t
}

// answer is the row for a decision of t's rules.
func (t *table) answer(d *weir.Decision) []byte {
	switch i, ok := t.set.Find(d.Rule); {
	case ok:
		return t.lines[i].row
	case len(d.Usages)+len(d.Verdicts) > 0, d.Degraded: // a rule that is degraded has matched
		return t.within
	}
	return t.none
}

// visit calls each for the rules that answered, in the rules' order, until it
// returns false. i is a rule's index, out says that it is over or decides at
// once. Rules that only watch or count say nothing.
func (t *table) visit(d *weir.Decision, each func(i int, out bool) bool) {
	verdicts := d.Verdicts
	verdictsTo := func(end int) bool {
		for len(verdicts) > 0 {
			i, _ := t.set.Find(verdicts[0])
			if i > end {
				break
			}
			verdicts = verdicts[1:]
			if !each(i, true) {
				return false
			}
		}
		return true
	}
	for n := range d.Usages {
		u := &d.Usages[n]
		if u.Kind != rule.KindLimit || u.Shadow {
			continue
		}
		i, _ := t.set.Find(u.Rule)
		if !verdictsTo(i) || !each(i, !u.Allowed) {
			return
		}
	}
	verdictsTo(len(t.lines))
}
