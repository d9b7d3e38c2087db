package rule

import (
	"maps"
	"slices"

	"github.com/weirhq/weir/window"
)

// LimitOf returns the limit that rule i counts a request under: its quota in its
// window. The quota can depend on an attribute ([Quota]). That of a trigger is its
// number, and that of a counter is [window.Unlimited]. LimitOf returns nil for a
// verdict, and for a rule that has no quota for the request and so does not match
// it. The same limit is always the same pointer.
func (s *Set) LimitOf(i int, values []string) *window.Compiled { return s.rules[i].limitOf(values) }

// limitOf returns the limit of c for a request; see [Set.LimitOf].
func (c *compiled) limitOf(values []string) *window.Compiled {
	if c.by.at < 0 {
		return c.limit
	}
	if l, ok := c.cases[c.by.value(values)]; ok {
		return l
	}
	return c.other
}

// limits compiles the limits that the rule may need.
func (c *compiled) limits() {
	switch {
	case c.Kind() == KindVerdict:
		return
	case c.Kind() != KindLimit || c.Quota.By == "":
		c.limit = window.MustCompile(c.Rule.limit(c.Rule.number()))
		return
	}
	c.cases = make(map[string]*window.Compiled, len(c.Quota.Cases))
	for value, quota := range c.Quota.Cases {
		c.cases[value] = window.MustCompile(c.Rule.limit(quota))
	}
	if c.Quota.Else != nil {
		c.other = window.MustCompile(c.Rule.limit(*c.Quota.Else))
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

// limit returns the limit of r with a quota.
func (r *Rule) limit(quota int64) window.Limit {
	return window.Limit{
		Quota: quota, Measure: r.Measure, Window: r.window(), After: r.After,
		Hold: r.Hold, Unsettled: r.Unsettled, MaxHolds: r.MaxHolds, Ban: r.Ban,
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
		if w.Precision == 0 && r.Measure != window.Distinct && r.Trigger <= window.MaxPrecision {
			w.Precision = int(r.Trigger)
		}
	}
	return w
}

// caseNames returns the values that have a quota of their own, sorted.
func (q *Quota) caseNames() []string { return slices.Sorted(maps.Keys(q.Cases)) }
