package window

// How the kinds count what holds cost once it is final. See holding for what they
// have in common.

// backdating is an algorithm that can count hits at an earlier instant.
type backdating interface {
	algorithm

	// convert returns a state of the kind as one of this algorithm. It may be the
	// same.
	convert(s State) State

	// withoutHolds returns s as a state of the kind, when no hold is left, and reports
	// whether it could.
	withoutHolds(s State) (State, bool)

	// open begins a period for a take that holds, if the kind has periods.
	open(s State, now Instant) State

	// addAt counts n hits of a hold that was taken at an instant and is settled at
	// another, up to now, whatever the quota.
	addAt(s State, now, at, settled Instant, n int64) State

	// empty returns s without hits. A period that has begun stays.
	empty(s State) State

	// leaves returns the instant from which hits that were taken at an instant,
	// and settled by now, do not count any more.
	leaves(s State, at Instant) Instant
}

// sameState is a part of the algorithms whose states are those of the kind.
type sameState struct{}

func (sameState) convert(s State) State              { return s }
func (sameState) withoutHolds(s State) (State, bool) { return s, true }
func (sameState) open(s State, _ Instant) State      { return s }
func (sameState) empty(s State) State                { return s[:0] }

// backdatingOf returns how the algorithm a, of a kind, counts what holds cost. Nil: the
// kind cannot hold.
func backdatingOf(a algorithm) backdating {
	switch a := a.(type) {
	case *sliding:
		return &pairLog{*a}
	case *cells:
		return &backdatingCells{cells: a}
	case *period:
		return &backdatingPeriod{period: a}
	case *keptPeriod:
		return &backdatingKept{keptPeriod: a}
	case *bucket:
		return &backdatingBucket{bucket: a}
	case *ever:
		return &backdatingEver{ever: a}
	}
	return nil
}

// backdatingEver: an instant is as good as another.
type backdatingEver struct {
	sameState
	*ever
}

func (w *backdatingEver) leaves(State, Instant) Instant { return forever }

func (w *backdatingEver) addAt(s State, now, _, _ Instant, n int64) State {
	return w.add(s, now, Hits{N: n})
}

// backdatingBucket: holds do not drain, and what they cost is counted when they end.
type backdatingBucket struct {
	sameState
	*bucket
}

func (w *backdatingBucket) leaves(State, Instant) Instant { return 0 } // see holding.at

func (w *backdatingBucket) addAt(s State, _, _, settled Instant, n int64) State {
	return w.add(s, settled, Hits{N: n})
}

// backdatingCells: hits count in the cell of their take.
type backdatingCells struct {
	sameState
	*cells
}

func (w *backdatingCells) leaves(_ State, at Instant) Instant {
	return Instant((floorDiv(int64(at), w.width)+1)*w.width + w.length - 1)
}

func (w *backdatingCells) addAt(s State, now, at, _ Instant, n int64) State {
	if w.leaves(s, at) <= now {
		return s
	}
	c := readCells(s)
	if len(c.cells) > 0 && c.width != w.width {
		s = c.recut(w.width, now)
		c = readCells(s)
	}
	c.width = w.width
	c.expire(now, w.length)
	n = min(n, MaxHits-c.sum)
	index := floorDiv(int64(at), w.width)
	if len(c.cells) == 0 {
		return append(s[:0], uint64(w.width), uint64(index), uint64(n), uint64(n))
	}
	first, newest := min(index, c.first), max(index, c.newest())
	size := cellsHeader + int(newest-first) + 1
	out := s
	if size > cap(s) {
		out = make(State, size, max(size, w.maxWords()))
	}
	out = out[:size]
	moved := cellsHeader + int(c.first-first)
	kept := len(c.cells)
	copy(out[moved:], c.cells)
	clear(out[cellsHeader:moved])
	clear(out[moved+kept:])
	out[0], out[1], out[2] = uint64(w.width), uint64(newest), uint64(c.sum+n)
	out[cellsHeader+int(index-first)] += uint64(n)
	return out
}

// backdatingPeriod: hits count in the period of their take, and nowhere once that is
// over. A take that holds begins a period, as another take does, and a hold that
// outlives its period begins none.
//
// State: as of period. The hits of a period with holds can be 0.
type backdatingPeriod struct {
	sameState
	*period
}

// withoutHolds returns an empty state for a period without hits: giving everything back
// ends a period.
func (w *backdatingPeriod) withoutHolds(s State) (State, bool) {
	if len(s) > 0 && s[1] == 0 {
		s = s[:0]
	}
	return s, true
}

func (w *backdatingPeriod) open(s State, now Instant) State {
	if len(s) == 0 || now >= w.end(s[0]) {
		return append(s[:0], w.mark(now), 0)
	}
	return s
}

func (w *backdatingPeriod) empty(s State) State {
	if len(s) > 0 {
		s[1] = 0
	}
	return s
}

func (w *backdatingPeriod) addAt(s State, now, at, _ Instant, n int64) State {
	if w.leaves(s, at) > now {
		s[1] = uint64(addHits(int64(s[1]), n))
	}
	return s
}

func (w *backdatingPeriod) leaves(s State, at Instant) Instant {
	if len(s) == 0 || !w.has(s[0], at) {
		return 0
	}
	return w.end(s[0])
}

func (w *backdatingPeriod) sub(s State, now, at Instant, h Hits) State {
	if w.hasBoth(s[0], now, at) && now < w.end(s[0]) {
		s[1] -= uint64(min(h.N, int64(s[1])))
	}
	return s
}

func (w *backdatingPeriod) expires(s State) Instant {
	if s[1] == 0 {
		return 0
	}
	return w.end(s[0])
}
