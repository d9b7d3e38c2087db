package window

import "github.com/weirhq/weir/internal/transition"

// Most limits are sliding windows with a quota up to the precision. Their
// states are logs of dates: a date for each hit, without a header. A take can change
// such a state in place, without writing it anew. The laws (TestLaws, FuzzLaws)
// compare this fast path with look and add of the sliding window.

// dateLog returns the sliding window whose states are logs of dates unless hits
// are recorded past the quota, or nil when a is something else.
func dateLog(a algorithm) *sliding {
	if w, ok := a.(*sliding); ok && w.most <= w.precision {
		return w
	}
	return nil
}

// isDateLog reports whether s is a log of dates that stays one when hits are taken.
func (l *Compiled) isDateLog(s State) bool { return l.log != nil && (len(s) == 0 || s[0]&logMark == 0) }

// ask is [Compiled.ask] for a log of dates.
func (w *sliding) ask(t transition.Transition, r *Result, s State, now Instant, n int64) State {
	length, k := Instant(w.length), len(s)
	if now = min(max(now, 0), lastInstant); k > 0 {
		now = max(now, Instant(s[k-1]))
	}
	if t != transition.Count {
		*r = Result{Quota: w.quota}
		out := 0
		if k > 0 {
			out = left(s, now-length)
			r.ResetAfter = max(Instant(s[k-1])+length-now, 0).length()
		}
		r.Used = int64(k - out)
		r.Before, r.Remaining = r.Used, max(0, w.quota-r.Used)
		switch {
		case n > w.quota:
			r.RetryAfter = Never
		case r.Used > w.quota-n && n > 0: // so many hits have to leave first
			r.RetryAfter = (Instant(s[out+int(r.Used+n-w.quota)-1]) + length - now).length()
		default:
			r.Allowed = true
		}
	}
	if t == transition.Look || !r.Allowed || n <= 0 {
		return s
	}
	r.Used += n
	r.Remaining -= n
	r.ResetAfter = length.length()
	if kept := int(r.Before); kept < k {
		s = s[:copy(s, s[k-kept:])]
	}
	s = append(s, uint64(now))
	for range n - 1 {
		s = append(s, uint64(now))
	}
	return s
}

// left returns how many of dates, oldest first, are at edge or before it. It
// searches from the oldest date on, in steps that double: in steady traffic one
// or two dates have left, which a search by halves finds only after as many
// steps as for any other number.
func left(dates []uint64, edge Instant) int {
	lo, step := 0, 1 // all before lo have left
	for lo < len(dates) && Instant(dates[lo]) <= edge {
		lo += step
		step *= 2
	}
	if step <= 2 { // no step was taken, or the first one
		return lo
	}
	// The one at hi, if there is one, has not left; the one at lo has.
	lo, hi := lo-step/2, min(lo, len(dates))
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); Instant(dates[mid]) <= edge {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1
}
