package window

import "time"

// Reading is what a store holds for one key under one limit at an instant.
type Reading struct {
	// Result is the answer to a check of no hits.
	Result

	// At is the instant of the reading. It is never before the latest instant
	// that the state remembers.
	At Instant

	// History is the hits by cell, oldest first, up to the cell that At is in.
	// A fixed or calendar window has one cell, its current period. History is
	// empty for kinds without cells and for limits with a condition.
	History []Cell

	length int64 // of a cells window in µs; 0: Count cannot estimate
}

// Cell is a stretch of time and the hits in it.
type Cell struct {
	Start  Instant
	Length time.Duration
	Hits   int64
}

// Read returns what s holds at now. It allocates the history.
func (l *Compiled) Read(s State, now Instant) Reading {
	r := Reading{Result: l.Check(s, now, Hits{}), At: l.clock(s, now)}
	switch {
	case l.limit.After.Count > 0:
	case l.limit.Window.Kind == KindCells:
		r.History, r.length = l.historyCells(s, r.At), l.limit.Window.micros()
	case l.limit.Window.Kind == KindFixed || l.limit.Window.Kind == KindCalendar:
		r.History = l.historyPeriod(s, r.Used)
	}
	return r
}

// Count returns the number of hits in the last d, at most the window's length.
// For a cells window it is an estimate: the oldest cell is weighed by its
// overlap. For the other kinds Count returns Used, the hits of the whole window.
func (r *Reading) Count(d time.Duration) int64 {
	if r.length == 0 {
		return r.Used
	}
	if len(r.History) == 0 {
		return 0
	}
	c := cellRow{width: int64(r.History[0].Length / time.Microsecond)}
	c.first = int64(r.History[0].Start) / c.width
	c.cells = make([]uint64, len(r.History))
	for i, cell := range r.History {
		c.cells[i] = uint64(cell.Hits)
		c.sum += cell.Hits
	}
	return c.estimate(r.At, min(int64(d/time.Microsecond), r.length))
}

func (l *Compiled) historyCells(s State, now Instant) []Cell {
	c := readCells(s)
	c.expire(now, l.limit.Window.micros())
	if len(c.cells) == 0 {
		return nil
	}
	current := int64(now) / c.width
	cells := make([]Cell, current-c.first+1)
	for i := range cells {
		cells[i].Start = Instant((c.first + int64(i)) * c.width)
		cells[i].Length = time.Duration(c.width) * time.Microsecond
		if i < len(c.cells) {
			cells[i].Hits = int64(c.cells[i])
		}
	}
	return cells
}

func (l *Compiled) historyPeriod(s State, used int64) []Cell {
	if used == 0 {
		return nil
	}
	end := l.periodEnd(s)
	start := end - Instant(l.limit.Window.micros())
	if l.limit.Window.Kind == KindCalendar {
		start, _ = l.limit.Window.PeriodBounds(end - 1)
	}
	return []Cell{{Start: start, Length: end.Sub(start), Hits: used}}
}
