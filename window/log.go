package window

import "github.com/weirhq/weir/internal/verb"

// Most limits are sliding windows with a quota up to the precision. Their
// states are plain logs: a date for each hit, without a header. A take can change
// such a state in place, without writing it anew. A take under several limits looks
// at all of them first, and what it found in a log saves the search when it counts
// ([Compiled.Look], [Compiled.TakeLooked]). The laws (TestLaws, FuzzLaws) compare
// this fast path with look and add of the sliding window.

// plainLog returns the sliding window whose states are plain logs unless hits
// are recorded past the quota, or nil when a is something else.
func plainLog(a algorithm) *sliding {
	if w, ok := a.(*sliding); ok && w.quota <= w.precision {
		return w
	}
	return nil
}

// isLog reports whether s is a plain log that stays one when hits are taken.
func (l *Compiled) isLog(s State) bool { return l.log != nil && (len(s) == 0 || s[0]&logMark == 0) }

// check fills in r, the answer for n hits at now. It returns how many hits of
// the log s have left, and now as the log sees it.
func (w *sliding) check(r *Result, s State, now Instant, n int64) (out int, at Instant) {
	now = min(max(now, 0), lastInstant)
	length := Instant(w.length)
	if k := len(s); k > 0 {
		newest := Instant(s[k-1])
		now = max(now, newest)
		out = left(s, now-length)
		r.ResetAfter = max(newest+length-now, 0).length()
	}
	r.Used = int64(len(s) - out)
	r.Before, r.Quota, r.Remaining = r.Used, w.quota, max(0, w.quota-r.Used)
	switch {
	case n > w.quota:
		r.RetryAfter = Never
	case r.Used > w.quota-n && n > 0: // so many hits have to leave first
		r.RetryAfter = (Instant(s[out+int(r.Used+n-w.quota)-1]) + length - now).length()
	default:
		r.Allowed = true
	}
	return out, now
}

// take decides like Take, for a plain log.
func (w *sliding) take(r *Result, s State, now Instant, n int64) State {
	out, now := w.check(r, s, now, n)
	if !r.Allowed || n == 0 {
		return s
	}
	r.Used += n
	r.Remaining -= n
	r.ResetAfter = Instant(w.length).length()
	return renew(s, out, int(n), now)
}

// Look is Check that writes the answer into r, which must be the zero Result, and
// returns what it has found. It is for weir's own stores.
func (l *Compiled) Look(r *Result, s State, now Instant, h Hits) verb.Looked {
	if l.isLog(s) {
		out, at := l.log.check(r, s, now, max(h.N, 0))
		return verb.Looked{Now: int64(at), First: int32(out), Log: true}
	}
	if l.isAround(s) {
		l.checkAround(r, s, now, h.clean())
		return verb.Looked{}
	}
	now = l.clock(s, now)
	used, fits := l.algorithm.look(s, now, h.clean())
	l.result(r, s, now, used, used, fits)
	return verb.Looked{}
}

// TakeLooked counts h for a key in state s after Look, with the same arguments, has
// admitted h and returned k. It turns r, the answer of Look, into that of Take. It
// reports false, and has not changed s and r, where Take has to count instead:
// unless s is a plain log whose next state fits in its capacity.
func (l *Compiled) TakeLooked(r *Result, s State, h Hits, k verb.Looked) (next State, ok bool) {
	if !k.Log || h.N < 1 || len(s)-int(k.First)+int(h.N) > cap(s) {
		return s, false
	}
	r.Used += h.N
	r.Remaining -= h.N
	r.ResetAfter = Instant(l.log.length).length()
	return renew(s, int(k.First), int(h.N), Instant(k.Now)), true
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
	if step <= 2 { // none or one
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

// renew drops the first out dates of s and adds n, at least one, that are now.
func renew(s State, out, n int, now Instant) State {
	if out > 0 {
		s = s[:copy(s, s[out:])]
	}
	s = append(s, uint64(now))
	for range n - 1 {
		s = append(s, uint64(now))
	}
	return s
}
