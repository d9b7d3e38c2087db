package window

import (
	"time"

	"github.com/weirhq/weir/internal/transition"
)

// Reading holds the numbers of one key under one limit at an instant, and its
// history.
type Reading struct {
	// Result is the answer to a check of 0 hits.
	Result

	// At is the instant of the reading. It is never before the latest instant
	// that the state remembers.
	At Instant

	// History holds the hits by cell, oldest first, up to the cell that contains
	// At. It starts with the first cell that has hits, and has no gaps. A fixed
	// or calendar window has one cell, its current period. A sliding or held window has
	// a cell without a length for each instant by which it dates hits, and they leave
	// together, a length of the window after it. History is empty for buckets, windows
	// that never end and limits with a condition, and without hits. It lacks hits that
	// are held by a limit with [Limit.Hold].
	History []Cell

	// Holds has what is held, the hold that ends first at the front: from its take to its end. A hold
	// of a held window starts at its last renewal, and one of a reserve has no length, and starts at its end.
	Holds []Cell

	// BannedUntil is the end of the ban of a key that is banned, and otherwise 0.
	// Strikes is the number of strikes that are not forgotten.
	BannedUntil Instant
	Strikes     int64

	length int64 // of a window cut into cells, in µs; 0: it is not
}

// Cell holds the hits from Start, included, to Start plus Length, excluded. Without a
// Length it holds hits that are dated by Start.
type Cell struct {
	Start  Instant
	Length time.Duration
	Hits   int64
}

// dated adds hits that are dated by one instant to cells without a length.
func dated(cells []Cell, at Instant, hits int64) []Cell {
	if n := len(cells); n > 0 && cells[n-1].Start == at {
		cells[n-1].Hits += hits
		return cells
	}
	return append(cells, Cell{Start: at, Hits: hits})
}

// Read returns the numbers and the history of a key in state s at now. It counts
// nothing. It allocates the history.
func (l *Compiled) Read(s State, now Instant) (r Reading) {
	var p part
	l.open(&p, s, now)
	r.At, r.Strikes = p.now, p.ban.left(p.now, &l.Ban)
	if w := l.holder(p.in); w != nil && len(p.in) > 0 {
		r.Holds = w.holds(p.in, p.now)
	}
	if p.banned() {
		l.answerBanned(&r.Result, &p, noQuestion)
		r.BannedUntil = p.ban.end
		return r
	}
	l.Do(transition.Look, &r.Result, s, now, Hits{}, nil)
	if len(p.in) == 0 {
		return r
	}
	cut := false
	if r.History, cut = p.algo.history(p.in, p.now, r.Used); cut {
		r.length = l.Window.micros()
	}
	return r
}

// Count returns the number of hits in the last d, at most the window's length.
// For a cells window it is an estimate: the oldest cell counts in proportion to
// the part of it that is in the last d, rounded down. For other windows Count
// ignores d and returns Used, the hits of the whole window.
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
