package koalaapi

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
	outcome string
	number  int64 // its return code; -1: none
	row     []byte
}

// table is the table of the rules in force.
func (a *API) table() *table {
	set := a.engine.Rules()
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
		l := line{outcome: outcome, number: -1}
		if n, ok := numberOf(r.Name); ok {
			l.number = n
		}
		l.row = rows[outcome].by(r.Name).appendTo(nil)
		t.lines[i] = l
	}
	return t
}

// answer is the row for a decision. The rules may have been swapped since t was
// made: where t does not know the one that decided, the rules of now are asked.
func (t *table) answer(a *API, d *weir.Decision) []byte {
	switch {
	case d.Rule != "":
		for range 2 {
			if i, ok := t.set.Find(d.Rule); ok && t.lines[i].outcome == d.Outcome {
				return t.lines[i].row
			}
			t = a.table()
		}
		return rowOf(t.set, d.Outcome).by(d.Rule).appendTo(nil)
	case len(d.Limits)+len(d.Verdicts) > 0, d.Degraded: // a rule that is degraded has matched
		return t.within
	}
	return t.none
}

// visit calls each for the rules that answered, in the rules' order, until it
// returns false. i is a rule's index, out says that it is over or decides at
// once. Rules that only watch or count say nothing.
func (t *table) visit(d *weir.Decision, each func(i int, out bool) bool) {
	verdicts, limits := d.Verdicts, d.Limits
	for {
		v, l := t.next(&verdicts), t.nextLimit(&limits)
		switch {
		case v < 0 && l < 0:
			return
		case l < 0 || v >= 0 && v < l:
			verdicts = verdicts[1:]
			if !each(v, true) {
				return
			}
		default:
			out := !limits[0].Allowed
			limits = limits[1:]
			if !each(l, out) {
				return
			}
		}
	}
}

// next drops what t does not know from names, and is the index of the first
// one left, -1 when there is none.
func (t *table) next(names *[]string) int {
	for ; len(*names) > 0; *names = (*names)[1:] {
		if i, ok := t.set.Find((*names)[0]); ok && t.set.Rule(i).Mode == rule.Enforce {
			return i
		}
	}
	return -1
}

// nextLimit is next for limits that decide.
func (t *table) nextLimit(limits *[]weir.Usage) int {
	for ; len(*limits) > 0; *limits = (*limits)[1:] {
		u := &(*limits)[0]
		if i, ok := t.set.Find(u.Rule); ok && u.Kind == rule.Limit && !u.Shadow {
			return i
		}
	}
	return -1
}
