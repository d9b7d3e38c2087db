package rule

import (
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// checkWindow checks the window with each quota of the rule. It replaces a missing window by another
// one, in order to find further faults.
func (c *checker) checkWindow() {
	r := *c.Rule
	need := func(field string, w *window.Window) {
		if *w == (window.Window{}) {
			c.fault(field, "is missing, want a length such as 1h or a period such as day")
			*w = window.Fixed(time.Hour)
		}
	}
	need("window", &r.Window)
	if r.After != (window.After{}) {
		need("after.window", &r.After.Window)
	}
	switch r.Kind() {
	case KindTrigger, KindCounter:
		r.Hold, r.Release, r.MaxHolds, r.Ban = 0, false, 0, window.Ban{} // reported already
		if r.Window.Kind == window.KindHeld {
			return
		}
	}
	switch r.Kind() {
	case KindTrigger:
		c.checkLimit("trigger", r.limit(), r.Trigger)
		return
	case KindCounter:
		if r.Measure != window.Distinct { // reported already
			c.checkLimit("window", r.limit(), window.Unlimited)
		}
		return
	}
	limit := r.limit()
	each := func(field string, quota int64) {
		if quota >= 0 { // reported already
			c.checkLimit(field, limit, quota)
		}
	}
	q := r.Quota
	if q.Attribute() == "" {
		each("limit", q.Value)
		return
	}
	if q.Of != "" {
		each("limit.most", q.Most)
		if r.Window.Kind == window.KindBucket {
			each("limit.most", hardest(&r.Window, q.Most))
		}
	}
	for _, value := range q.caseNames() {
		each("limit."+value, q.Cases[value])
	}
	if q.Else != nil {
		each("limit.else", *q.Else)
	}
}

// hardest returns the quota from 1 to most with which the largest products occur in w, a
// bucket. With a burst that is the slowest rate, and otherwise the largest quota that has no
// common divisor with the length.
func hardest(w *window.Window, most int64) int64 {
	if w.Burst > 0 {
		most = min(most, 1)
	}
	for n := most; n > 1; n-- {
		a, b := n, int64(w.Length/time.Microsecond)
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return n
		}
	}
	return most
}

// checkLimit adds the faults of limit with a quota, which stands
// at field in a rules file.
func (c *checker) checkLimit(field string, limit window.Limit, quota int64) {
	if max(quota, limit.Highest) > window.MaxHits || limit.Measure > window.Distinct {
		return // reported already
	}
	limit.Quota = quota
	_, err := window.Compile(limit)
	for _, f := range fault.Of(err) {
		c.faultOnce(fileField(f.Path, field), f.Problem)
	}
}

// fileField returns the path in a rules file of the field of a window.Limit.
func fileField(field, quota string) string {
	switch field {
	case "quota":
		return quota
	case "measure":
		return "window" // the only fault left: it cannot count members
	}
	for _, part := range []string{".kind", ".length", ".period"} {
		field = strings.TrimSuffix(field, part)
	}
	return field
}

// faultOnce adds a fault that several quotas may have in common.
func (c *checker) faultOnce(field, problem string) {
	c.fault(field, "%s", problem)
	last := len(c.faults) - 1
	if slices.ContainsFunc(c.faults[:last], func(f *fault.Fault) bool { return *f == *c.faults[last] }) {
		c.faults = c.faults[:last]
	}
}
