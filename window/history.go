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

	length int64 // of a window cut into cells, in µs; 0: it is not
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
	if len(s) == 0 {
		return r
	}
	cut := false
	if r.History, cut = l.algorithm.history(s, r.At, r.Used); cut {
		r.length = l.limit.Window.micros()
	}
	return r
}

// Count returns the number of hits in the last d, at most the window's length.
// In a cells window it is an estimate: the oldest cell is weighed by its
// overlap. For the other kinds Count returns Used, the hits of the whole window.
func (r *Reading) Count(d time.Duration) int64 {
	if r.length == 0 || len(r.History) == 0 {
		return r.Used
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
