package window

// After: a limit that counts only from the Count-th hit of another window on.
// Below the count hits go to that base alone; from the hit that reaches it on
// they are taken by the limit too. With {30, a day} before one in two seconds
// the 30th question is the limit's first hit, and the 31st waits for it.
//
// State: the number of words of the base's state, that state, the limit's.

// base is the limit that counts up to the condition. It must tell apart counts
// up to where the limit itself is full, so that a refund finds the hits that
// were in both.
func (l *Limit) base() Limit {
	b := Limit{Quota: addHits(l.After.Count, max(l.capacity(), 0)), Measure: l.Measure, Window: l.After.Window}
	if b.Window.Kind == KindSliding && b.Window.Precision == 0 {
		b.Window.Precision = int(min(max(b.Quota, DefaultPrecision), 1000))
	}
	return b
}

// inner is the limit without the condition.
func (l *Limit) inner() Limit {
	in := *l
	in.After = After{}
	return in
}

// split is the two states in s.
func split(s State) (base, inner State) {
	if len(s) == 0 {
		return nil, nil
	}
	n := 1 + int(s[0])
	return s[1:n:n], s[n:]
}

// part is how many of n hits are the limit's when the base holds used.
func (l *Compiled) part(used, n int64) int64 {
	return min(max(used-l.limit.After.Count+1+n, 0), n)
}

func (l *Compiled) lookAfter(s State, now Instant, h Hits) (used int64, fits Instant) {
	base, inner := l.base, l.inner
	b, in := split(s)
	held, _ := base.look(b, now, Hits{})
	n := l.part(held, h.N)
	used, fits = inner.look(in, now, Hits{N: n})
	if fits != never && fits <= now {
		return used, fits
	}
	// The hits fit when the limit has room for them, or earlier, when so much
	// has left the base that fewer of them are the limit's. That they fit, once
	// true, stays true, so bisect for the first instant.
	fitsAt := func(at Instant) bool {
		held, _ := base.look(b, at, Hits{})
		_, f := inner.look(in, at, Hits{N: l.part(held, h.N)})
		return f != never && f <= at
	}
	hi := fits
	if fits == never {
		if hi = base.Expires(b); hi <= now || !fitsAt(hi) {
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

func (l *Compiled) addAfter(s State, now Instant, h Hits) State {
	base, inner := l.base, l.inner
	b, _ := split(s)
	held, _ := base.look(b, now, Hits{})
	n := l.part(held, h.N)
	s = l.onBase(s, base.Room(b, h), func(b State) State { return base.add(b, now, h) })
	if n == 0 {
		return s
	}
	return onInner(s, func(in State) State { return inner.add(in, now, Hits{N: n}) })
}

func (l *Compiled) subAfter(s State, now Instant, h Hits) State {
	base, inner := l.base, l.inner
	b, _ := split(s)
	held, _ := base.look(b, now, Hits{})
	n := min(max(held-l.limit.After.Count+1, 0), h.N)
	s = l.onBase(s, len(b), func(b State) State {
		if len(b) == 0 {
			return b
		}
		return base.sub(b, now, h)
	})
	s = onInner(s, func(in State) State {
		if n == 0 || len(in) == 0 {
			return in
		}
		return inner.sub(in, now, Hits{N: n})
	})
	if len(s) == 1 {
		return s[:0]
	}
	return s
}

// onBase changes the base's part of s with f, which is given room words to
// grow into, and closes the gap behind it.
func (l *Compiled) onBase(s State, room int, f func(State) State) State {
	b, in := split(s)
	words, room := len(b), max(len(b), room)
	size := 1 + room + len(in)
	out := s
	if size > cap(s) {
		out = make(State, size, max(size, l.roomFor(size)))
	}
	out = out[:size]
	copy(out[1+room:], in)
	copy(out[1:], b)
	b = f(out[1 : 1+words : 1+room])
	if len(b) > room { // only where the base's own limit was changed
		grown := make(State, 1+len(b)+len(in))
		copy(grown[1+len(b):], out[1+room:])
		out, room = grown, len(b)
	}
	copy(out[1:], b)
	copy(out[1+len(b):], out[1+room:])
	out[0] = uint64(len(b))
	return out[:1+len(b)+len(in)]
}

// onInner changes the limit's part of s with f.
func onInner(s State, f func(State) State) State {
	n := 1 + int(s[0])
	in := f(s[n:])
	return append(s[:n], in...)
}

func (l *Compiled) expiresAfter(s State) Instant {
	base, inner := l.base, l.inner
	b, in := split(s)
	return max(base.Expires(b), inner.Expires(in))
}

func (l *Compiled) roomAfter(s State, h Hits) int {
	base, inner := l.base, l.inner
	b, in := split(s)
	return 1 + base.Room(b, h) + inner.Room(in, h)
}

// roomFor is the capacity to make for a state that needs size words now.
func (l *Compiled) roomFor(size int) int { return min(2*size, l.maxWords()) }
