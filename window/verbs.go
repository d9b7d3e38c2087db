package window

// The verbs are the same for every kind. A kind answers four questions:
//
//	look     how much is used now, and when would n more fit?
//	add      count n hits
//	sub      take the newest n hits back
//	expires  when is the state as good as none?

// Check tells whether h would be admitted at now. It never changes s.
func (l *Compiled) Check(s State, now Instant, h Hits) (r Result) {
	if l.isLog(s) {
		l.lookLog(&r, s, now, max(h.N, 0))
		return r
	}
	now = l.clock(s, now)
	used, fits := l.look(s, now, h.clean())
	l.result(&r, s, now, used, used, fits)
	return r
}

// Take asks l to admit h at now for a key in state s, and counts them when it
// does. A denied take leaves s as it is.
func (l *Compiled) Take(s State, now Instant, h Hits) (next State, r Result) {
	if l.isLog(s) {
		next = l.takeLog(&r, s, now, max(h.N, 0))
		return next, r
	}
	now, h = l.clock(s, now), h.clean()
	before, fits := l.look(s, now, h)
	if fits > now || fits == never || h.N == 0 {
		l.result(&r, s, now, before, before, fits)
		return s, r
	}
	s = l.add(s, now, h)
	used := before + h.N
	if l.limit.Measure == Distinct || l.limit.After.Count > 0 || h.N > MaxHits || used > MaxHits {
		used, _ = l.look(s, now, Hits{})
	}
	l.result(&r, s, now, before, used, now)
	return s, r
}

// Record counts h at now, whatever the quota. What a window has no room to
// remember past its quota is the oldest; Used then means "at least".
func (l *Compiled) Record(s State, now Instant, h Hits) (State, Result) {
	return l.change(s, now, h, l.add)
}

// Refund gives h back: the newest hits that are still in the window, or one
// use of the member. It never gives back more than there is.
func (l *Compiled) Refund(s State, now Instant, h Hits) (State, Result) {
	return l.change(s, now, h, l.sub)
}

func (l *Compiled) change(s State, now Instant, h Hits, f func(State, Instant, Hits) State) (next State, r Result) {
	now, h = l.clock(s, now), h.clean()
	before, _ := l.look(s, now, Hits{})
	if h.N == 0 {
		l.result(&r, s, now, before, before, now)
		return s, r
	}
	s = f(s, now, h)
	used, _ := l.look(s, now, Hits{})
	l.result(&r, s, now, before, used, now)
	return s, r
}

// never is the instant at which hits that cannot fit would fit.
const never Instant = -1 << 63

// clock is now as the key has to see it: not before the latest instant that s
// remembers, and inside what a state can keep. A sliding window remembers its
// newest hit, a cells window the start of its newest cell, a fixed window its
// start; a calendar window and a bucket remember none, and are merely never
// more generous at an earlier instant.
func (l *Compiled) clock(s State, now Instant) Instant {
	now = min(max(now, 0), lastInstant)
	switch {
	case len(s) == 0:
		return now
	case l.limit.After.Count > 0:
		base, inner := l.base, l.inner
		b, in := split(s)
		return max(base.clock(b, now), inner.clock(in, now))
	case l.limit.Measure == Distinct:
		return max(now, Instant(memberDate(s, len(s)-memberWords)))
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return max(now, Instant(s[len(s)-1]))
	case KindCells:
		return max(now, Instant(s[0]*s[1]))
	case KindFixed:
		return max(now, Instant(s[0]))
	default:
		return now
	}
}

// lastInstant is as far as an instant goes: after it a window could not be
// added without leaving 2^53.
const lastInstant = Instant(MaxHits) - Instant(MaxLength/1000)

func (h Hits) clean() Hits {
	h.N = max(h.N, 0)
	return h
}

// result fills in r, which is empty; the hits asked about fit from fits on. It
// writes to where the caller returns r from: a copy of a Result costs several
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
	if e := l.Expires(s); e > now {
		r.ResetAfter = e.Sub(now)
	}
}

// look says how much is used at now, and the instant from which h fit: now or
// earlier when they fit at once, or [never].
func (l *Compiled) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	if l.limit.After.Count > 0 {
		return l.lookAfter(s, now, h)
	}
	if l.limit.Measure == Distinct {
		return l.lookMembers(s, now, h)
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return l.lookSliding(s, now, h.N)
	case KindCells:
		return l.lookCells(s, now, h.N)
	case KindFixed, KindCalendar:
		return l.lookPeriod(s, now, h.N)
	default:
		return l.lookBucket(s, now, h.N)
	}
}

func (l *Compiled) add(s State, now Instant, h Hits) State {
	if l.limit.After.Count > 0 {
		return l.addAfter(s, now, h)
	}
	if l.limit.Measure == Distinct {
		return l.addMember(s, now, h.Member)
	}
	h.N = min(h.N, MaxHits)
	switch l.limit.Window.Kind {
	case KindSliding:
		return l.addSliding(s, now, h.N)
	case KindCells:
		return l.addCells(s, now, h.N)
	case KindFixed, KindCalendar:
		return l.addPeriod(s, now, h.N)
	default:
		return l.addBucket(s, now, h.N)
	}
}

func (l *Compiled) sub(s State, now Instant, h Hits) State {
	if len(s) == 0 {
		return s
	}
	if l.limit.After.Count > 0 {
		return l.subAfter(s, now, h)
	}
	if l.limit.Measure == Distinct {
		return l.subMember(s, now, h.Member)
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return l.subSliding(s, now, h.N)
	case KindCells:
		return l.subCells(s, now, h.N)
	case KindFixed, KindCalendar:
		return l.subPeriod(s, now, h.N)
	default:
		return l.subBucket(s, now, h.N)
	}
}

// Expires is the instant from which s is as good as an empty state; 0 for an
// empty one.
func (l *Compiled) Expires(s State) Instant {
	switch {
	case len(s) == 0:
		return 0
	case l.limit.After.Count > 0:
		return l.expiresAfter(s)
	case l.limit.Measure == Distinct:
		return l.expiresMembers(s)
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return Instant(s[len(s)-1]) + Instant(l.limit.Window.micros())
	case KindCells:
		return l.expiresCells(s)
	case KindFixed, KindCalendar:
		return l.periodEnd(s)
	default:
		return expiresBucket(s)
	}
}

// Room is how many words the state may need after h are counted: with that
// much capacity Take and Record do not allocate, unless the state was left by
// a limit that has since been changed.
func (l *Compiled) Room(s State, h Hits) int {
	h = h.clean()
	switch {
	case l.limit.After.Count > 0:
		return l.roomAfter(s, h)
	case l.limit.Measure == Distinct:
		return min(max(len(s), l.membersHeader())+2, l.maxWords())
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return l.roomSliding(s, h.N)
	case KindCells:
		return l.roomCells(s)
	case KindFixed, KindCalendar:
		return periodWords
	default:
		return bucketWords
	}
}

// TakeRoom is how many words the state may need if h are taken, which is never
// more than Room: a take needs no room for hits past the quota.
func (l *Compiled) TakeRoom(s State, h Hits) int {
	switch {
	case !l.isLog(s):
		return l.Room(s, h)
	case h.N > l.limit.Quota:
		return len(s)
	default:
		return max(min(len(s)+int(max(h.N, 0)), int(l.limit.Quota)), len(s))
	}
}

// maxWords is the most words that a state of l can have.
func (l *Compiled) maxWords() int {
	switch {
	case l.limit.After.Count > 0:
		base, inner := l.base, l.inner
		return 1 + base.maxWords() + inner.maxWords()
	case l.limit.Measure == Distinct:
		return l.membersHeader() + 2*int(max(l.limit.Quota, 1)+1)
	}
	switch l.limit.Window.Kind {
	case KindSliding:
		return logHeader + int(min(l.limit.Quota, l.limit.Window.precision())) + 1
	case KindCells:
		return cellsHeader + l.limit.Window.cells() + 1
	case KindFixed, KindCalendar:
		return periodWords
	default:
		return bucketWords
	}
}

// addHits is a+b, held at MaxHits.
func addHits(a, b int64) int64 { return min(a+min(b, MaxHits), MaxHits) }

// floorDiv is a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
