package window

// Fixed and calendar windows: a period and one number. A fixed window starts
// with the first hit and lasts its length, so up to twice the quota can pass
// across an edge; a calendar window is the current minute, hour, … of a zone
// and admits the quota in each.
//
// State: the period's mark, the hits in it. The mark of a fixed window is its
// start; of a calendar window its end, so that the calendar is only asked at
// the first hit of a period. Giving everything back ends a period.
const periodWords = 2

// periodEnd is when the period of s ends.
func (l *Compiled) periodEnd(s State) Instant {
	if l.limit.Window.Kind == KindFixed {
		return Instant(s[0]) + Instant(l.limit.Window.micros())
	}
	return Instant(s[0])
}

// mark is the mark of a period whose first hit is at now.
func (l *Compiled) mark(now Instant) uint64 {
	if l.limit.Window.Kind == KindFixed {
		return uint64(now)
	}
	return uint64(l.limit.Window.PeriodEnd(now))
}

func (l *Compiled) lookPeriod(s State, now Instant, n int64) (used int64, fits Instant) {
	end := now
	if len(s) > 0 {
		if end = l.periodEnd(s); now < end {
			used = int64(s[1])
		}
	}
	switch {
	case n == 0 || l.limit.Quota == Unlimited:
		return used, now
	case n > l.limit.Quota:
		return used, never
	case used > l.limit.Quota-n:
		return used, end
	}
	return used, now
}

func (l *Compiled) addPeriod(s State, now Instant, n int64) State {
	if len(s) == 0 || now >= l.periodEnd(s) {
		return append(s[:0], l.mark(now), uint64(n))
	}
	s[1] = uint64(addHits(int64(s[1]), n))
	return s
}

func (l *Compiled) subPeriod(s State, now Instant, n int64) State {
	if now >= l.periodEnd(s) || n >= int64(s[1]) {
		return s[:0]
	}
	s[1] -= uint64(n)
	return s
}
