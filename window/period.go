package window

// Fixed, calendar and aligned windows: a period and one number. A fixed window starts
// with the first hit and lasts its length, so up to twice the quota can pass
// across an edge. A calendar window is the current minute, hour, … of a zone
// and admits the quota in each. An aligned window is a calendar window here.
//
// State: the period's mark, the hits in it. The mark of a fixed window is its
// start. The mark of a calendar window is its end, so that the calendar is
// needed only at the first hit of a period. Giving everything back ends a
// period.
const periodWords = 2

type period struct {
	quota int64
	span
}

// span is when a period begins and ends.
type span struct {
	length   Instant // from the mark to the end: of a fixed window its length, of a calendar window 0
	calendar *Window // nil: a fixed window
}

func newFixed(l *Limit) algorithm { return &period{quota: l.Quota, span: spanOfFixed(&l.Window)} }

func newCalendar(l *Limit) algorithm {
	return &period{quota: l.Quota, span: spanOfCalendar(&l.Window)}
}

func spanOfFixed(w *Window) span { return span{length: Instant(w.micros())} }

func spanOfCalendar(w *Window) span {
	calendar := *w
	return span{calendar: &calendar}
}

// end returns the end of the period with this mark.
func (p *span) end(mark uint64) Instant { return Instant(mark) + p.length }

// mark returns the mark of a period whose first hit is at now.
func (p *span) mark(now Instant) uint64 {
	if p.calendar == nil {
		return uint64(now)
	}
	return uint64(p.calendar.periodEnd(now))
}

// since returns the latest instant that a mark remembers.
func (p *span) since(mark uint64) Instant {
	if p.calendar == nil {
		return Instant(mark)
	}
	return 0
}

// has reports whether at is in the period with this mark.
func (p *span) has(mark uint64, at Instant) bool {
	if p.calendar == nil {
		return at >= Instant(mark) && at < p.end(mark)
	}
	return at < Instant(mark) && p.mark(at) == mark
}

// hasBoth reports whether hits that were counted at an instant, or anytime, can be given back to
// the period with this mark at now. After a clock was set back, a calendar period can be later than now.
func (p *span) hasBoth(mark uint64, now, at Instant) bool {
	return at == anytime || p.has(mark, at) && (p.calendar == nil || p.mark(now) == mark)
}

// cell returns the period with this mark and the hits in it.
func (p *span) cell(mark uint64, hits int64) []Cell {
	if hits == 0 {
		return nil
	}
	start, end := Instant(mark), p.end(mark)
	if p.calendar != nil {
		start, _ = p.calendar.PeriodBounds(end - 1)
	}
	return []Cell{{Start: start, Length: end.Sub(start), Hits: hits}}
}

func (p *period) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	end := now
	if len(s) > 0 {
		if end = p.end(s[0]); now < end {
			used = int64(s[1])
		}
	}
	switch {
	case h.N == 0 || p.quota == Unlimited:
		return used, now
	case h.N > p.quota:
		return used, never
	case used > p.quota-h.N:
		return used, end
	}
	return used, now
}

func (p *period) add(s State, now Instant, h Hits) State {
	if len(s) == 0 || now >= p.end(s[0]) {
		return append(s[:0], p.mark(now), uint64(h.N))
	}
	s[1] = uint64(addHits(int64(s[1]), h.N))
	return s
}

func (p *period) sub(s State, now, at Instant, h Hits) State {
	switch {
	case !p.hasBoth(s[0], now, at):
		return s
	case now >= p.end(s[0]) || h.N >= int64(s[1]):
		return s[:0]
	}
	s[1] -= uint64(h.N)
	return s
}

func (p *period) expires(s State) Instant { return p.end(s[0]) }

// seen returns the start of a fixed window. A calendar window keeps its period
// at earlier instants, and the wait is longer.
func (p *period) seen(s State) Instant { return p.since(s[0]) }

func (p *period) wordsAfter(State, Hits) int { return periodWords }

func (p *period) maxWords() int { return periodWords }

func (p *period) history(s State, _ Instant, used int64) ([]Cell, bool) {
	return p.cell(s[0], used), false
}
