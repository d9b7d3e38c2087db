package window

// Most limits are sliding windows with a quota up to the precision. Their
// states are plain logs: a date for each hit, without a header. A take can change
// such a state in place, without writing it anew, which halves its time from 55
// to about 25 ns at a quota of 100. The laws (TestLaws, FuzzLaws) compare this
// fast path with look and add of the sliding window.

// plainLog returns the sliding window whose states are plain logs unless hits
// are recorded past the quota, or nil when a is something else.
func plainLog(a algorithm) *sliding {
	if w, ok := a.(*sliding); ok && w.quota <= w.precision {
		return w
	}
	return nil
}

// groupsOf returns the sliding window whose states are groups of several hits, or nil
// when a is something else.
func groupsOf(a algorithm) *sliding {
	if w, ok := a.(*sliding); ok && w.group > 1 {
		return w
	}
	return nil
}

// Logs reports whether states under l can be plain logs, which [Compiled.TakeLooked]
// changes.
func (l *Compiled) Logs() bool { return l.log != nil }

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

// takeInPlace is take where the next log fits in the capacity of s. Only here is
// it known how many dates leave, and so make room.
func (w *sliding) takeInPlace(r *Result, s State, now Instant, n int64) (next State, ok bool) {
	out, now := w.check(r, s, now, n)
	if !r.Allowed || n == 0 {
		return s, true
	}
	if len(s)-out+int(n) > cap(s) {
		return s, false
	}
	r.Used += n
	r.Remaining -= n
	r.ResetAfter = Instant(w.length).length()
	return renew(s, out, int(n), now), true
}

// Ends are the first and the last word of a state, and its number of words.
type Ends struct {
	First, Last uint64
	Words       int
}

// TakeEnds decides as [Compiled.Take] does for one hit, where the answer follows from
// the ends of the state: in a plain log of which no date has left. A store that keeps
// large states away from their keys saves a cache miss or two with that. It writes the
// answer into r, which must be the zero Result. If the hit is admitted, the next state
// is the state with the word next behind it. TakeEnds reports false where the answer
// needs other words. Then r is unchanged.
func (l *Compiled) TakeEnds(r *Result, e Ends, now Instant) (next uint64, ok bool) {
	w := l.log
	if w == nil || e.First&logMark != 0 {
		return 0, false
	}
	used, length := int64(e.Words), Instant(w.length)
	now = max(min(now, lastInstant), Instant(e.Last))
	oldest := Instant(e.First) + length
	if oldest <= now || used > w.quota || used == 0 {
		return 0, false
	}
	r.Before, r.Quota = used, w.quota
	if used == w.quota {
		r.Used = used
		r.RetryAfter = (oldest - now).length()
		r.ResetAfter = (Instant(e.Last) + length - now).length()
		return 0, true
	}
	r.Allowed = true
	r.Used, r.Remaining = used+1, w.quota-used-1
	r.ResetAfter = length.length()
	return uint64(now), true
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
