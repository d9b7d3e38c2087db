package envoyrls

import (
	"math"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// fill fills in the status of a descriptor from its decision.
func (a *answer) fill() {
	d := a.decision
	a.status.Code = codeOf(d.Allowed)
	u := closest(d)
	if u == nil {
		return
	}
	at, _ := d.Rules.Find(u.Rule)
	a.describe(u.Rule, u.Quota, &d.Rules.Rule(at).Window)
	a.status.LimitRemaining = uint32(min(max(u.Remaining, 0), math.MaxUint32))
	wait := u.ResetAfter
	if !u.Allowed {
		wait = u.RetryAfter
	}
	if wait != window.Never {
		a.setReset(wait)
	}
}

// closest returns the limit for a status: of those that deny the one with the longest wait, and
// otherwise the one with the fewest hits left. It returns a limit in shadow mode only if there is
// no other, and nil if there is no limit.
func closest(d *weir.Decision) (best *weir.Usage) {
	for i := range d.Usages {
		u := &d.Usages[i]
		if u.Kind == rule.KindLimit && (best == nil || before(u, best)) {
			best = u
		}
	}
	return best
}

// before reports whether a is closer than b.
func before(a, b *weir.Usage) bool {
	switch {
	case a.Shadow != b.Shadow:
		return b.Shadow
	case a.Allowed != b.Allowed:
		return !a.Allowed
	case a.Allowed:
		return a.Remaining < b.Remaining
	case a.RetryAfter == window.Never || b.RetryAfter == window.Never:
		return b.RetryAfter != window.Never
	}
	return a.RetryAfter > b.RetryAfter
}

// describe sets the current limit. A window without a length has no unit.
func (a *answer) describe(name string, quota int64, w *window.Window) {
	unit, times := unitOf(w)
	if times == 1 {
		times = 0
	}
	a.setLimit(name, uint32(min(max(quota, 0), math.MaxUint32)), unit, times)
}

// units are the units of the protocol with a fixed length, the longest first. Months and years
// vary, so only calendar windows have them.
var units = [...]struct {
	length time.Duration
	unit   rls.RateLimitResponse_RateLimit_Unit
}{
	{7 * 24 * time.Hour, rls.RateLimitResponse_RateLimit_WEEK},
	{24 * time.Hour, rls.RateLimitResponse_RateLimit_DAY},
	{time.Hour, rls.RateLimitResponse_RateLimit_HOUR},
	{time.Minute, rls.RateLimitResponse_RateLimit_MINUTE},
	{time.Second, rls.RateLimitResponse_RateLimit_SECOND},
}

// periods are the units of calendar windows.
var periods = map[window.Period]rls.RateLimitResponse_RateLimit_Unit{
	window.Minute: rls.RateLimitResponse_RateLimit_MINUTE,
	window.Hour:   rls.RateLimitResponse_RateLimit_HOUR,
	window.Day:    rls.RateLimitResponse_RateLimit_DAY,
	window.Week:   rls.RateLimitResponse_RateLimit_WEEK,
	window.Month:  rls.RateLimitResponse_RateLimit_MONTH,
	window.Year:   rls.RateLimitResponse_RateLimit_YEAR,
}

// unitOf returns the length of w as a unit and a number of times. It returns no
// unit for windows without a length, and for lengths that are not whole seconds.
func unitOf(w *window.Window) (unit rls.RateLimitResponse_RateLimit_Unit, times uint32) {
	if w.Kind == window.KindCalendar {
		return periods[w.Period], 1
	}
	for _, u := range units {
		if w.Length >= u.length && w.Length%u.length == 0 && w.Kind != window.KindHeld {
			return u.unit, uint32(w.Length / u.length)
		}
	}
	return rls.RateLimitResponse_RateLimit_UNKNOWN, 0
}
