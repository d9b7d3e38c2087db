package window

import "time"

// Closed periods: a calendar or aligned window under a limit with [Limit.Export] keeps
// the hits of the period before the current one, until the current one closes.
//
// State: as of period, and, if there are any, the hits of the period before the one with
// the mark. A limit without Export ignores them, and drops them with the next period.
// What is given back or settled late counts in the period of its take, also when that is
// the one before.
type keptPeriod struct {
	period
	longest Instant // no period is longer
}

const keptWords = periodWords + 1

// longestPeriods are bounds for the lengths of periods, whatever the zone does: a zone
// has skipped a day, or made one longer.
var longestPeriods = [...]time.Duration{
	Minute: time.Minute, Hour: time.Hour, Day: 49 * time.Hour,
	Week: 9 * 24 * time.Hour, Month: 33 * 24 * time.Hour, Year: 368 * 24 * time.Hour,
}

// longestKept returns a bound for the length of the periods that can be read after their
// end, and 0 if l keeps none.
func (l *Limit) longestKept() time.Duration {
	switch {
	case !l.Export || l.Measure == Distinct || l.After != (After{}) || l.Ban != (Ban{}):
	case l.Window.Kind == KindCalendar:
		return longestPeriods[l.Window.Period]
	case l.Window.Kind == KindAligned:
		return l.Window.Length
	}
	return 0
}

func newKept(l *Limit) algorithm {
	return &keptPeriod{
		period{quota: l.Quota, span: spanOfCalendar(&l.Window)}, Instant(l.longestKept() / time.Microsecond),
	}
}

// last returns the hits of the period before the one with the mark of s.
func (p *keptPeriod) last(s State) uint64 {
	if len(s) < keptWords {
		return 0
	}
	return s[2]
}

// roll returns s, which can be empty, with the mark of the period that contains now,
// unless it has a later one because the clock was set back.
func (p *keptPeriod) roll(s State, now Instant) State {
	if len(s) > 0 && now < Instant(s[0]) {
		return s
	}
	start, end := p.calendar.PeriodBounds(now)
	if len(s) > 0 && Instant(s[0]) == start && s[1] > 0 {
		return append(s[:0], uint64(end), 0, s[1])
	}
	return append(s[:0], uint64(end), 0)
}

// trim returns an empty state for one without hits.
func (p *keptPeriod) trim(s State) State {
	if len(s) > 0 && s[1] == 0 && p.last(s) == 0 {
		return s[:0]
	}
	return s
}

func (p *keptPeriod) add(s State, now Instant, h Hits) State {
	s = p.roll(s, now)
	s[1] = uint64(addHits(int64(s[1]), h.N))
	return s
}

func (p *keptPeriod) sub(s State, now, at Instant, h Hits) State {
	return p.trim(p.lower(s, now, at, h))
}

// lower is sub without trim.
func (p *keptPeriod) lower(s State, now, at Instant, h Hits) State {
	if at != anytime {
		return p.book(s, now, at, -h.N)
	}
	if now < Instant(s[0]) {
		s[1] -= uint64(min(h.N, int64(s[1])))
	}
	return s
}

// book adds n hits, which may be negative, to the period that contains at, if that is the
// one that contains now or the one before.
func (p *keptPeriod) book(s State, now, at Instant, n int64) State {
	s = p.roll(s, now)
	in := -1
	start, _ := p.calendar.PeriodBounds(Instant(s[0]) - 1)
	switch {
	case p.mark(now) != s[0]: // the clock was set back
		if n > 0 && p.has(s[0], at) {
			in = 1
		}
	case p.has(s[0], at):
		in = 1
	case at < start && p.calendar.periodEnd(at) == start:
		if in = 2; len(s) == periodWords {
			s = append(s, 0)
		}
	}
	if in > 0 {
		s[in] = uint64(max(addHits(int64(s[in]), n), 0))
	}
	if len(s) == keptWords && s[2] == 0 {
		s = s[:periodWords]
	}
	return s
}

// expires returns the instant from which no period of s can be read.
func (p *keptPeriod) expires(s State) Instant {
	if s[1] > 0 {
		return Instant(s[0]) + p.longest
	}
	return Instant(s[0])
}

// resets returns the instant from which the key is as good as unused.
func (p *keptPeriod) resets(s State) Instant {
	if s[1] == 0 {
		return 0
	}
	return Instant(s[0])
}

func (p *keptPeriod) wordsAfter(State, Hits) int { return keptWords }

func (p *keptPeriod) maxWords() int { return keptWords }

// before returns the bounds of the period before the one that contains now, or before the
// later one of s after the clock was set back.
func (p *keptPeriod) before(s State, now Instant) (start, end Instant) {
	if len(s) > 0 && now < Instant(s[0]) {
		now = Instant(s[0]) - 1
	}
	end, _ = p.calendar.PeriodBounds(now)
	start, _ = p.calendar.PeriodBounds(end - 1)
	return start, end
}

// closed returns the hits of the period that ended at end, which before has returned.
func (p *keptPeriod) closed(s State, end Instant) int64 {
	switch {
	case len(s) == 0:
		return 0
	case Instant(s[0]) == end:
		return int64(s[1])
	case Instant(s[0]) > end:
		return int64(p.last(s))
	}
	return 0
}

// backdatingKept is what backdatingPeriod is, with the period before.
type backdatingKept struct {
	sameState
	*keptPeriod
}

func (w *backdatingKept) withoutHolds(s State) (State, bool) { return w.trim(s), true }

func (w *backdatingKept) open(s State, now Instant) State { return w.roll(s, now) }

func (w *backdatingKept) empty(s State) State {
	if len(s) > 0 {
		s[1] = 0
	}
	return s
}

func (w *backdatingKept) addAt(s State, now, at, _ Instant, n int64) State {
	return w.book(s, now, at, n)
}

func (w *backdatingKept) leaves(s State, at Instant) Instant {
	if len(s) == 0 || !w.has(s[0], at) {
		return 0
	}
	return w.end(s[0])
}

func (w *backdatingKept) sub(s State, now, at Instant, h Hits) State { return w.lower(s, now, at, h) }

func (w *backdatingKept) expires(s State) Instant {
	switch {
	case s[1] > 0:
		return Instant(s[0]) + w.longest
	case w.last(s) > 0:
		return Instant(s[0])
	}
	return 0
}

// until returns an instant from which a hit at an instant is in no period that can be
// read.
func (p *keptPeriod) until(at Instant) Instant { return p.calendar.periodEnd(at) + p.longest }

// resets returns the instant from which a key is as good as unused, except for a
// closed period.
func (w *holding) resets(s State) Instant {
	if !isHeld(s) {
		return w.kept.resets(s)
	}
	v := readHolds(s)
	var end, last Instant
	if len(v.list) > 0 {
		end = Instant(v.list[len(v.list)-holdWords])
	}
	if len(v.base) > 0 {
		last = w.kept.resets(v.base)
	}
	if s[3] > 0 && last == 0 {
		last = w.base.leaves(v.base, Instant(s[3]-1))
	}
	return max(end, last)
}

// resetOf returns the instant from which a key in state s, of a, is as good as unused,
// and 0 for an empty state.
func (l *Compiled) resetOf(a algorithm, s State) Instant {
	if l.keeps && len(s) > 0 {
		return a.(interface{ resets(s State) Instant }).resets(s)
	}
	return orZero(a, s)
}

// Exported returns the hits of a key in state s that are final, and those of holds that
// are alive at now, in the window; or, if closed, in the period of a calendar window that
// ended last, which cell then has the bounds of. Hits that are given back or settled late
// count there until the next period ends. ok is false if l keeps no closed period: that
// needs [Limit.Export], a calendar or aligned window, and no condition, ban or members.
func (l *Compiled) Exported(s State, now Instant, closed bool) (cell Cell, held int64, ok bool) {
	var p part
	l.open(&p, s, now)
	in := holdState{base: p.in}
	if _, holds := p.algo.(*holding); holds {
		in = readHolds(p.in)
	}
	kept, _ := l.algorithm.(*keptPeriod)
	switch {
	case closed && kept == nil:
		return cell, 0, false
	case !closed:
		cell.Hits, _ = p.algo.look(p.in, p.now, Hits{})
		held = l.heldHits(&p)
		cell.Hits -= min(held, cell.Hits)
		return cell, held, true
	}
	start, end := kept.before(in.base, p.now)
	cell = Cell{Start: start, Length: end.Sub(start), Hits: kept.closed(in.base, end)}
	for i := 0; i < len(in.list); i += holdWords {
		till, at, hits := Instant(in.list[i]), Instant(in.list[i+1]), in.list[i+2]
		switch {
		case at < start || at >= end:
		case till > p.now:
			held += int64(hits &^ keepFlag)
		case hits&keepFlag != 0:
			cell.Hits = addHits(cell.Hits, int64(hits&^keepFlag))
		}
	}
	return cell, held, true
}

// heldHits returns the hits of the holds that are alive.
func (l *Compiled) heldHits(p *part) (n int64) {
	if len(p.in) == 0 {
		return 0
	}
	switch w := p.algo.(type) {
	case *holding:
		v := readHolds(p.in)
		for i := v.ended(p.now); i < len(v.list); i += holdWords {
			n += int64(v.list[i+2] &^ keepFlag)
		}
	case *held:
		n, _ = w.look(p.in, p.now, Hits{})
	}
	return n
}
