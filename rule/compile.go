package rule

import (
	"strconv"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/window"
)

// limits has the compiled limits of a set, of which many rules can have the same.
type limits map[window.Limit]*window.Compiled

// compile returns l, which is valid, ready for use.
func (all limits) compile(l window.Limit) *window.Compiled {
	c, ok := all[l]
	if !ok {
		c = window.MustCompile(l)
		all[l] = c
	}
	return c
}

// compile returns what the compiled set needs of r.
func (r *Rule) compile(all limits) ruleset.Rule {
	c := ruleset.Rule{
		ID:       identity(r),
		Together: r.Together, Of: r.Of, Sums: r.Measure == window.Sum,
		Off:  r.Mode == Off,
		Ends: r.Kind() == KindVerdict && r.Mode == Enforce && !r.CountRest,
	}
	for _, w := range r.When {
		c.When = append(c.When, conditionOf(w.Attribute, w.Test, w.Trim))
	}
	for _, name := range r.Per {
		n := r.Networks[name]
		c.Per = append(c.Per, ruleset.Part{Attribute: name, V4: n.V4, V6: n.V6})
	}
	r.limits(&c, all)
	return c
}

// conditionOf returns a condition with what the index needs to know of its test.
func conditionOf(attribute string, t Test, trim bool) ruleset.Condition {
	_, exact := t.(equal)
	return ruleset.Condition{
		Attribute: attribute, Test: t, Trim: trim,
		Values: equals(t), Exact: exact, Presence: t == Present(),
	}
}

// identity returns the ID of r; see [ruleset.Compiled.ID].
func identity(r *Rule) string {
	if r.Kind() == KindVerdict {
		return string(ruleset.AppendKey(nil, r.Name))
	}
	after := ""
	if r.After != (window.After{}) {
		after = r.After.Window.ID()
	}
	id := ruleset.AppendKey(nil, r.Name, r.Measure.String(), r.Of, r.window().ID(), after)
	id = ruleset.AppendKey(id, r.Per...)
	for _, name := range r.Per {
		if n, ok := r.Networks[name]; ok {
			id = ruleset.AppendKey(id, "network", name, strconv.Itoa(n.V4), strconv.Itoa(n.V6))
		}
	}
	return string(id)
}

// limits compiles the limits that r may need into c.
func (r *Rule) limits(c *ruleset.Rule, all limits) {
	switch {
	case r.Kind() == KindVerdict:
		return
	case r.Kind() != KindLimit || r.Quota.Attribute() == "":
		limit := r.limit()
		limit.Quota = r.number()
		c.Limit = all.compile(limit)
		return
	}
	limit := r.limit()
	c.By, c.Known = r.Quota.Attribute(), Equal(r.Quota.caseNames()...)
	if r.Quota.Of != "" {
		limit.Quota = r.Quota.Most
		c.Limit = all.compile(limit)
	}
	c.Cases = make(map[string]*window.Compiled, len(r.Quota.Cases))
	for value, quota := range r.Quota.Cases {
		limit.Quota = quota
		c.Cases[value] = all.compile(limit)
	}
	if r.Quota.Else != nil {
		limit.Quota = *r.Quota.Else
		c.Other = all.compile(limit)
	}
}

// number returns the quota of a rule that has the same one for all requests.
func (r *Rule) number() int64 {
	switch r.Kind() {
	case KindLimit:
		return r.Quota.Value
	case KindTrigger:
		return r.Trigger
	}
	return window.Unlimited
}

// limit returns the limit of r without its quota, of which a rule can have one for each of many
// values.
func (r *Rule) limit() window.Limit {
	highest := int64(0)
	if r.Quota != nil && r.Quota.Attribute() != "" {
		highest = r.Quota.Highest()
	}
	return window.Limit{
		Highest: highest, Measure: r.Measure, Window: r.window(), After: r.After,
		Hold: r.Hold, Release: r.Release, MaxHolds: r.MaxHolds, Ban: r.Ban, Export: r.Export, Lease: r.Lease,
	}
}

// window returns the window that r counts in. It differs from r.Window for
// sliding windows of triggers and counters:
//
//   - A counter has no quota that would bound a log of its hits, so it counts
//     in cells.
//   - A trigger must not fire early, whereas a limit may deny early. So its
//     log is exact up to the longest log that is possible.
func (r *Rule) window() window.Window {
	w := r.Window
	if w.Kind != window.KindSliding {
		return w
	}
	switch r.Kind() {
	case KindCounter:
		return window.Cells(w.Length, 0)
	case KindTrigger:
		if w.Precision == 0 && r.Measure != window.Distinct && r.Trigger <= window.MaxEntries {
			w.Precision = int(r.Trigger)
		}
	}
	return w
}
