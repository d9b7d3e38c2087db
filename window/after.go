package window

// After: a limit that counts only from the Count-th hit of another window on.
// Hits below the count go to that window alone, the base. From the hit that
// reaches the count on they are taken by the limit too. With {30, a day} before
// one in two seconds the 30th question is the limit's first hit, and the 31st
// waits for it.
//
// Over a sliding window the count is exact up to MaxEntries. Above it the
// base counts in groups of g = ⌈count/MaxEntries⌉ and reaches the count at
// most g-1 hits early, never late.
//
// State: the number of words of the base's state, that state, the limit's.
type after struct {
	count       int64
	base, inner algorithm
}

// waits reports whether l has a condition.
func waits(l *Limit) bool { return l.After.Count > 0 }

func compileAfter(c *Compiled, below func(Limit) *Compiled) {
	inner := *c.Limit
	inner.After, inner.Export = After{}, false
	c.base, c.inner = below(baseOf(c.Limit)), below(inner)
	c.recounts = true
	c.undated = c.base.undated || c.inner.undated
	c.algorithm = &after{count: c.After.Count, base: c.base.algorithm, inner: c.inner.algorithm}
}

// baseOf returns the limit that counts up to the condition of l.
//
// A take needs the newest Count hits of the base. A refund needs those that
// were in both windows, Count plus the quota, to find out how many of the hits
// that it gives back were the limit's. Over a sliding window these are kept up
// to MaxEntries, so that a larger quota does not coarsen the count. A refund
// that reaches beyond them is given back in part.
func baseOf(l *Limit) Limit {
	b := Limit{Quota: addHits(l.After.Count, max(l.Capacity(), 0)), Measure: l.Measure, Window: l.After.Window}
	if kinds[b.Window.Kind].fields&hasPrecision != 0 && b.Window.Precision == 0 {
		b.Quota = max(l.After.Count, min(b.Quota, MaxEntries))
		b.Window.Precision = int(min(b.Quota, MaxEntries))
	}
	return b
}

// split returns the two states in s.
func split(s State) (base, inner State) {
	if len(s) == 0 {
		return nil, nil
	}
	n := 1 + int(s[0])
	return s[1:n:n], s[n:]
}

// splitHits returns how many of n hits are the limit's when the base holds held.
func (a *after) splitHits(held, n int64) int64 {
	n = min(n, MaxHits+1) // as good as more: neither fits
	return min(max(held-a.count+1+n, 0), n)
}

func (a *after) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	b, in := split(s)
	held, _ := a.base.look(b, now, Hits{})
	used, fits = a.inner.look(in, now, Hits{N: a.splitHits(held, h.N)})
	if fits != never && fits <= now {
		return used, fits
	}
	// The hits fit when the limit has room for them, or earlier, when so much
	// has left the base that fewer of them are the limit's. Once they fit they
	// go on fitting, so bisect for the first instant.
	fitsAt := func(at Instant) bool {
		held, _ := a.base.look(b, at, Hits{})
		_, f := a.inner.look(in, at, Hits{N: a.splitHits(held, h.N)})
		return f != never && f <= at
	}
	hi := fits
	if fits == never { // at the latest when both states are empty
		if hi = a.expires(s); hi <= now || !fitsAt(hi) {
			return used, never
		}
	}
	lo := now // does not fit at lo, fits at hi
	if lo < hi-1 && !fitsAt(hi-1) {
		lo = hi - 1
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; fitsAt(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return used, hi
}

func (a *after) add(s State, now Instant, h Hits) State {
	b, _ := split(s)
	held, _ := a.base.look(b, now, Hits{})
	n := a.splitHits(held, h.N)
	s, b = a.growBase(s, a.base.wordsAfter(b, h))
	s = shrinkBaseOf(s, a.base.add(b, now, h), cap(b))
	if n == 0 {
		return s
	}
	end := 1 + int(s[0])
	return append(s[:end], a.inner.add(s[end:], now, Hits{N: n})...)
}

// sub gives h back to both windows, to the limit's at most as many as count beyond the condition.
func (a *after) sub(s State, now, at Instant, h Hits) State {
	b, in := split(s)
	held, _ := a.base.look(b, now, Hits{})
	if n := min(max(held-a.count+1, 0), h.N); n > 0 && len(in) > 0 {
		end := len(s) - len(in)
		s = append(s[:end], a.inner.sub(in, now, at, Hits{N: n})...)
	}
	if len(b) > 0 {
		s = shrinkBaseOf(s, a.base.sub(b, now, at, h), len(b))
	}
	if len(s) == 1 {
		return s[:0]
	}
	return s
}

// growBase returns s with capacity for room words of the base's state, after which the
// limit's follows, and the base's state with that capacity.
func (a *after) growBase(s State, room int) (opened, base State) {
	b, in := split(s)
	words, room := len(b), max(len(b), room)
	size := 1 + room + len(in)
	opened = s
	if size > cap(s) {
		opened = make(State, size, max(size, min(2*size, a.maxWords())))
	}
	opened = opened[:size]
	copy(opened[1+room:], in)
	copy(opened[1:], b)
	return opened, opened[1 : 1+words : 1+room]
}

// shrinkBaseOf puts b where s has capacity for room words of the base's state, and closes the
// gap after it.
func shrinkBaseOf(s, b State, room int) State {
	if len(b) > room { // only where the base's own limit was changed
		grown := make(State, len(s)-room+len(b))
		copy(grown[1+len(b):], s[1+room:])
		s, room = grown, len(b)
	}
	copy(s[1:], b)
	copy(s[1+len(b):], s[1+room:])
	s[0] = uint64(len(b))
	return s[:len(s)-room+len(b)]
}

func (a *after) expires(s State) Instant {
	b, in := split(s)
	return max(orZero(a.base, b), orZero(a.inner, in))
}

func (a *after) seen(s State) (at Instant) {
	b, in := split(s)
	if len(b) > 0 {
		at = a.base.seen(b)
	}
	if len(in) > 0 {
		at = max(at, a.inner.seen(in))
	}
	return at
}

func (a *after) wordsAfter(s State, h Hits) int {
	b, in := split(s)
	return 1 + a.base.wordsAfter(b, h) + a.inner.wordsAfter(in, h)
}

func (a *after) maxWords() int { return 1 + a.base.maxWords() + a.inner.maxWords() }

// history returns nothing: neither of the two windows has all the hits.
func (a *after) history(State, Instant, int64) ([]Cell, bool) { return nil, false }

// StillCounted returns how many of the hits in s still count at now: those that are used, and
// under a limit with a condition those that count towards it, too. Recorded in an empty state,
// as many hits use at least as much as s does. It is for weir's own reports.
func (l *Compiled) StillCounted(s State, now Instant) int64 {
	var p part
	l.open(&p, s, now)
	a, ok := p.algo.(*after)
	if !ok || len(p.in) == 0 {
		return l.Check(s, now, Hits{}).Used
	}
	b, in := split(p.in)
	held, _ := a.base.look(b, p.now, Hits{})
	if used, _ := a.inner.look(in, p.now, Hits{}); used > 0 {
		return max(held, addHits(used, a.count-1)) // the first ones would count towards the condition only
	}
	return held
}

func validateAfter(l *Limit, f *faults) {
	a := &l.After
	if *a == (After{}) {
		return
	}
	if a.Count < 1 || a.Count > MaxHits {
		f.add("after.count", "%d: want 1 to %d", a.Count, MaxHits)
	}
	if l.Measure == Distinct || l.Quota == Unlimited {
		f.add("after", "only a limit on hits or sums can wait for a count")
	}
	if kind, known := a.Window.row(); known && (kind.drains || kind.holds) {
		f.add("after.window.kind", "a %s window does not count: want %s", kind.name, names(func(k *row) bool { return !k.drains && !k.holds }))
		return
	}
	f.path = "after."
	a.Window.validate(f)
	f.path = ""
}
