package headers

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Limits are the limits that one HTTP answer states. The zero value states nothing.
type Limits struct {
	// Policies are the limits that apply to the request.
	Policies []Policy

	// RetryAfter is the wait until the same request fits. 0: no wait is stated.
	// [window.Never]: waiting does not help.
	RetryAfter time.Duration

	// Degraded is the reason why the store could not be asked, so that an outage
	// policy decided. It is empty if the store decided.
	Degraded store.Reason
}

// Policy is one limit, and the rest of its quota.
type Policy struct {
	// Name identifies the limit within the service, for example a rule's name.
	// It may be empty in an answer of a server that gives no names.
	Name string

	// Unit is what the quota counts. Empty means requests. Other units of the draft
	// are content-bytes and concurrent-requests.
	Unit string

	// Quota is the most that fits at once, and Remaining is how much of it fits
	// now.
	Quota, Remaining int64

	// Window is the length of the window. 0 means that it is not known or varies,
	// such as a month.
	Window time.Duration

	// RetryAfter is the wait until the limit admits the same request. It is 0 if
	// the limit admits it now, and [window.Never] if the limit never admits it.
	RetryAfter time.Duration

	// ResetAfter is the time until the whole quota is available again. 0 means that
	// it is available now, and [window.Never] that this never happens.
	ResetAfter time.Duration
}

// concurrentRequests is the unit of limits on what is in flight.
const concurrentRequests = "concurrent-requests"

// SetDecision sets l to the limits that decided d: those before the first
// verdict, without rules in shadow mode. It reuses the memory of l.Policies.
//
// The decision of a client has no rules. Then Window is 0 and Unit is empty in all
// policies, and l states no limit if a verdict decided.
func (l *Limits) SetDecision(d *weir.Decision) {
	l.Policies, l.RetryAfter, l.Degraded = l.Policies[:0], d.RetryAfter, d.DegradedReason
	for i := range d.Usages {
		if u := &d.Usages[i]; decides(d, u) {
			var w window.Window // of unknown length
			if d.Rules != nil {
				at, _ := d.Rules.Find(u.Rule)
				w = d.Rules.Rule(at).Window
			}
			l.Policies = append(l.Policies, policyOf(u.Rule, &w, &u.Result))
		}
	}
}

// decides reports whether u is of a limit that could decide d. Of rules that are not known,
// none could if there is a verdict.
func decides(d *weir.Decision, u *weir.Usage) bool {
	switch {
	case u.Kind != rule.KindLimit, u.Shadow:
		return false
	case len(d.Verdicts) == 0:
		return true
	case d.Rules == nil:
		return false
	}
	limit, _ := d.Rules.Find(u.Rule)
	verdict, _ := d.Rules.Find(d.Verdicts[0])
	return limit < verdict
}

// SetResult sets l to the result of a limiter with a limit. name is the name of the limit. It reuses
// the memory of l.Policies. If an outage policy decided without numbers, l has no policy.
func (l *Limits) SetResult(name string, limit *weir.Limit, r *weir.Result) {
	l.Policies, l.RetryAfter, l.Degraded = l.Policies[:0], r.RetryAfter, r.DegradedReason()
	if r.Degraded && r.Used == 0 && r.Remaining == 0 {
		return
	}
	l.Policies = append(l.Policies, policyOf(name, &limit.Window, &r.Result))
}

func policyOf(name string, w *window.Window, r *window.Result) Policy {
	p := Policy{
		Name: name, Quota: r.Quota, Remaining: r.Remaining, Window: length(w), RetryAfter: r.RetryAfter, ResetAfter: r.ResetAfter,
	}
	if w.Kind == window.KindHeld {
		p.Unit = concurrentRequests
	}
	return p
}

// length returns the length of w. It returns 0 for a month and a year, whose
// length varies, for a bucket, whose quota is a burst and not a rate, and for a
// window that counts what is in flight.
func length(w *window.Window) time.Duration {
	switch w.Kind {
	case window.KindBucket, window.KindHeld, window.KindEver:
		return 0
	case window.KindCalendar:
	default:
		return w.Length
	}
	switch w.Period {
	case window.Minute:
		return time.Minute
	case window.Hour:
		return time.Hour
	case window.Day:
		return 24 * time.Hour
	case window.Week:
		return 7 * 24 * time.Hour
	}
	return 0
}

// tightest sorts policies: those that deny before those that admit, of those that
// deny the one with the longest wait first, and of those that admit the one with
// the fewest hits left.
func tightest(policies []Policy) {
	if len(policies) > 1 {
		slices.SortStableFunc(policies, func(a, b Policy) int {
			return cmp.Or(compareWaits(b.RetryAfter, a.RetryAfter), cmp.Compare(a.Remaining, b.Remaining))
		})
	}
}

// compareWaits compares two waits. [window.Never] is the longest.
func compareWaits(a, b time.Duration) int {
	return cmp.Compare(uint64(a), uint64(b)) // Never is negative, and the largest as unsigned
}

// Wait returns how long to wait before the request is sent again, as the server
// states it: RetryAfter or, without one, the longest wait of the policies that have
// nothing left. 0: the server states no wait.
func (l *Limits) Wait() time.Duration {
	if l.RetryAfter != 0 {
		return l.RetryAfter
	}
	longest := time.Duration(0)
	for i := range l.Policies {
		if p := &l.Policies[i]; p.Remaining == 0 {
			if wait := cmp.Or(p.RetryAfter, p.ResetAfter); compareWaits(wait, longest) > 0 {
				longest = wait
			}
		}
	}
	return longest
}
