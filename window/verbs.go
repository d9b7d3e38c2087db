package window

import (
	"time"

	"github.com/weirhq/weir/internal/verb"
)

// Check returns the answer that Take would give for h at now, and counts nothing:
// it never changes s.
func (l *Compiled) Check(s State, now Instant, h Hits) (r Result) {
	l.look(&r, s, now, h)
	return r
}

// look is Check that writes the answer into r, which must be the zero Result.
func (l *Compiled) look(r *Result, s State, now Instant, h Hits) {
	switch h = h.clean(); {
	case l.isLog(s):
		l.log.checkPlain(r, s, l.log.clock(s, now), h.N)
	case l.isAround(s):
		l.checkAround(r, s, now, h)
	default:
		now = l.clock(s, now)
		used, fits := l.algorithm.look(s, now, h)
		l.result(r, s, now, used, used, fits)
	}
}

// Take counts h at now, for a key in state s, if l admits all of h. It returns
// the next state. If l denies h, Take returns s unchanged.
func (l *Compiled) Take(s State, now Instant, h Hits) (next State, r Result) {
	next = l.take(&r, s, now, h)
	return next, r
}

// Do runs a verb of package verb on a key in state s, and writes the answer into r.
// It is for weir's own stores. hold can be nil. Held in the answer reports whether the
// hits were held, or whether the hold was found; if not, s stays as it is.
func (l *Compiled) Do(v verb.Verb, r *Result, s State, now Instant, h Hits, hold *Hold) (next State) {
	*r = Result{}
	held := hold != nil && hold.ID != [12]byte{} && l.HoldLength() > 0
	switch v {
	case verb.Look:
		l.look(r, s, now, h)
		return s
	case verb.Take:
		if held || l.undated && hold != nil && hold.ID != [12]byte{} {
			return l.takeAround(r, s, now, h.clean(), &hold.ID)
		}
		return l.take(r, s, now, h)
	case verb.Record:
		return l.recordHold(r, s, now, h, hold, held, false)
	case verb.RecordNow:
		var begun Hold
		if held || l.undated && hold != nil && hold.ID != [12]byte{} {
			begun, held = Hold{ID: hold.ID, At: now, End: now.Add(l.HoldLength())}, true
		}
		return l.recordHold(r, s, now, h, &begun, held, false)
	case verb.RecordQuietly:
		return l.recordHold(r, s, now, h, hold, held, true)
	case verb.RecordDenied:
		return l.recordDenied(r, s, now, h)
	case verb.Tally:
		l.tally(r, s, now)
		return s
	case verb.Refund:
		return l.refund(r, s, now, h)
	}
	var named Hold
	if hold != nil {
		named = *hold
	}
	s, *r = l.holds.end(*l, v, s, now, h, named)
	return s
}

// take is Take that writes the answer into r, which must be the zero Result.
func (l *Compiled) take(r *Result, s State, now Instant, h Hits) State {
	if l.isLog(s) {
		now = l.log.clock(s, now)
		if l.log.checkPlain(r, s, now, max(h.N, 0)); r.Allowed && h.N > 0 {
			s = l.log.countPlain(r, s, now, h.N)
		}
		return s
	}
	if l.isAround(s) {
		return l.takeAround(r, s, now, h.clean(), nil)
	}
	now, h = l.clock(s, now), h.clean()
	before, fits := l.algorithm.look(s, now, h)
	if fits > now || fits == never || h.N == 0 {
		l.result(r, s, now, before, before, fits)
		return s
	}
	s = l.algorithm.add(s, now, h.countable())
	used := before + h.N
	if l.recounts || h.N > MaxHits || used > MaxHits {
		used, _ = l.algorithm.look(s, now, Hits{})
	}
	l.result(r, s, now, before, used, now)
	return s
}

// Record counts h at now without asking the quota. A sliding window and a limit
// with measure [Distinct] cannot remember all hits past the quota: they forget the
// oldest first, so Used can then be lower than what was recorded.
func (l *Compiled) Record(s State, now Instant, h Hits) (next State, r Result) {
	next = l.record(&r, s, now, h)
	return next, r
}

func (l *Compiled) record(r *Result, s State, now Instant, h Hits) State {
	if l.isAround(s) {
		return l.recordAround(r, s, now, h.clean(), nil, false)
	}
	now, h = l.clock(s, now), h.clean()
	before, _ := l.algorithm.look(s, now, Hits{})
	used := before
	if h.N > 0 {
		s = l.algorithm.add(s, now, h.countable())
		used, _ = l.algorithm.look(s, now, Hits{})
	}
	l.result(r, s, now, before, used, now)
	return s
}

// Refund gives h back: the newest hits that are still in the window, or, with
// measure [Distinct], one use of the member. It gives back at most what the window
// holds; an N above [MaxHits] gives back all hits. A member leaves the window with
// its last use, and a member with 2047 uses or more stays until its time is over.
func (l *Compiled) Refund(s State, now Instant, h Hits) (next State, r Result) {
	next = l.refund(&r, s, now, h)
	return next, r
}

func (l *Compiled) refund(r *Result, s State, now Instant, h Hits) State {
	if l.isAround(s) {
		return l.refundAround(r, s, now, h.clean())
	}
	now, h = l.clock(s, now), h.clean()
	before, _ := l.algorithm.look(s, now, Hits{})
	used := before
	if h.N > 0 && len(s) > 0 {
		if h.N > MaxHits && l.Measure != Distinct && l.Window.Kind != KindHeld {
			s = s[:0]
		} else {
			s = l.algorithm.sub(s, now, h)
		}
		used, _ = l.algorithm.look(s, now, Hits{})
	}
	l.result(r, s, now, before, used, now)
	return s
}

// Expires returns the instant from which s is as good as an empty state. It
// returns 0 for an empty state.
func (l *Compiled) Expires(s State) Instant {
	if len(s) == 0 {
		return 0
	}
	if l.isAround(s) {
		return l.expiresAround(s)
	}
	return l.algorithm.expires(s)
}

// Room returns the most words that the state can have after v has counted h. If s has
// that capacity v does not allocate, unless another limit has made s (see [State]). It
// is for weir's own stores.
func (l *Compiled) Room(v verb.Verb, s State, h Hits) int {
	h = h.clean().countable()
	switch {
	case v > verb.RecordDenied && v != verb.Settle:
		return 0
	case v <= verb.Take && l.isLog(s):
		if h.N > l.log.quota {
			return len(s)
		}
		return max(min(len(s)+int(h.N), int(l.log.quota)), len(s)) // a take counts no hits past the quota
	case l.isAround(s):
		return l.roomAround(s, h)
	}
	return l.algorithm.room(s, h)
}

// never is the instant at which hits that cannot fit would fit.
const never Instant = -1 << 63

// lastInstant is the latest instant that counts as itself: a window after it
// would leave 2^53.
const lastInstant = Instant(MaxHits) - Instant(MaxLength/time.Microsecond)

// clock returns the instant that now counts as for a key in state s: not before
// the latest instant that s remembers, and inside what a state can keep.
func (l *Compiled) clock(s State, now Instant) Instant {
	now = min(max(now, 0), lastInstant)
	if len(s) == 0 {
		return now
	}
	return max(now, l.algorithm.seen(s))
}

// clean returns h without negative hits.
func (h Hits) clean() Hits {
	h.N = max(h.N, 0)
	return h
}

// countable returns h with at most MaxHits hits.
func (h Hits) countable() Hits {
	h.N = min(h.N, MaxHits)
	return h
}

// result fills in r, which is empty. The hits in question fit from fits on. It
// fills in the caller's result because a copy of a Result costs several
// nanoseconds.
func (l *Compiled) result(r *Result, s State, now Instant, before, used int64, fits Instant) {
	r.Quota, r.Used, r.Before, r.Remaining = l.Capacity(), used, before, Unlimited
	if r.Quota != Unlimited {
		r.Remaining = max(0, r.Quota-used)
	}
	switch {
	case fits == never:
		r.RetryAfter = Never
	case fits > now:
		r.RetryAfter = fits.Sub(now)
	default:
		r.Allowed = true
	}
	if len(s) > 0 {
		if e := l.algorithm.expires(s); e > now {
			r.ResetAfter = resetAfter(e, now)
		}
	}
}

// addHits returns a+b, at most MaxHits.
func addHits(a, b int64) int64 { return min(a+min(b, MaxHits), MaxHits) }

// floorDiv returns a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
