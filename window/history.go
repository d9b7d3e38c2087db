package window

import "time"

// Cell is a stretch of time and the hits in it.
type Cell struct {
	Start  Instant
	Length time.Duration
	Hits   int64
}

// Count is the number of hits in the last d, at most the window's length. A
// cells window estimates it, the oldest cell weighed by its overlap; the others
// know the whole window only and give that.
func (l *Limit) Count(s State, now Instant, d time.Duration) int64 {
	now = l.clock(s, now)
	if l.Window.Kind != KindCells || l.After.Count > 0 {
		used, _ := l.look(s, now, Hits{})
		return used
	}
	w := l.Window.micros()
	c := readCells(s)
	c.expire(now, w)
	return c.estimate(now, min(int64(d/time.Microsecond), w))
}

// History is the hits by cell, oldest first, up to the cell that now is in. A
// fixed or calendar window gives its one period; the others, which keep no
// cells, give nothing.
func (l *Limit) History(s State, now Instant) []Cell {
	now = l.clock(s, now)
	switch l.Window.Kind {
	case KindCells:
		return l.historyCells(s, now)
	case KindFixed, KindCalendar:
		return l.historyPeriod(s, now)
	}
	return nil
}

func (l *Limit) historyCells(s State, now Instant) []Cell {
	c := readCells(s)
	c.expire(now, l.Window.micros())
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

func (l *Limit) historyPeriod(s State, now Instant) []Cell {
	used, _ := l.look(s, now, Hits{})
	if used == 0 || l.After.Count > 0 {
		return nil
	}
	end := l.periodEnd(s)
	start := end - Instant(l.Window.micros())
	if l.Window.Kind == KindCalendar {
		start, _ = l.Window.PeriodBounds(end - 1)
	}
	return []Cell{{Start: start, Length: end.Sub(start), Hits: used}}
}
