package koalaapi

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// table holds the answers of a set of rules, encoded once. It is immutable.
type table struct {
	set   *rule.Set
	rows  fallback // of a browse
	multi fallback // of a multi/browse
	lines []line   // by index in set
}

// fallback holds the rows of requests that no rule decides.
type fallback struct {
	none   []byte // no rule matched
	within []byte // rules matched, and none was over its limit
}

// line holds the answer of one rule.
type line struct {
	code int64 // its return code; 0: none
	kind int64 // the row's Ret_type
	row  []byte

	tally string // the rule's key in the statistics
}

// newTable returns the table of set, the rules of the namespace called name.
func newTable(name string, set *rule.Set) *table {
	none, within := rowOf(set, koalafile.OutcomeName(rowNone)), rowOf(set, koalafile.OutcomeName(rowWithin))
	t := &table{
		set:   set,
		rows:  fallback{none.appendTo(nil), within.appendTo(nil)},
		lines: make([]line, set.Len()),
	}
	none.RetCode, within.RetCode = 0, 0 // as koala has it
	t.multi = fallback{none.appendTo(nil), within.appendTo(nil)}
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
		t.lines[i] = line{code: r.Code, kind: answer.RetType, row: answer.appendTo(nil), tally: tallyKey(name, r.Name)}
	}
	return t
}

// answer returns the row for a decision of t's rules: a rule's, or one of f.
func (t *table) answer(d *weir.Decision, f fallback) []byte {
	switch i, ok := t.set.Find(d.Rule); {
	case ok:
		return t.lines[i].row
	case len(d.Usages)+len(d.Verdicts) > 0, d.Degraded: // a degraded rule has matched
		return f.within
	}
	return f.none
}

// visit calls each for the rules that answered, in the rules' order, until each
// returns false. i is the rule's index. out reports whether the rule is over
// its limit or is a verdict. visit skips rules in shadow mode, triggers and
// counters.
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
		if !verdictsTo(i) {
			return
		}
		behind := len(verdicts) < len(d.Verdicts)
		if !each(i, !u.Allowed || behind && t.wasOver(i, u, d.Allowed)) {
			return
		}
	}
	verdictsTo(len(t.lines))
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
