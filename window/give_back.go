package window

import "math/bits"

// How each kind gives back the hits of one take, which were counted at a known
// instant. Where that cannot be told, a kind gives back less. States are not
// empty.

// subAt gives back hits of a log without groups. It gives back none of a log with groups,
// where several hits share a date. Only limits with a condition need that, because other logs
// with groups become logs of pairs first, see holding.
func (w *sliding) subAt(s State, now, at Instant, h Hits) State {
	g := readLog(s)
	g.expire(now, w.length)
	end := left(g.dates, at)
	from := end
	for from > 0 && Instant(g.dates[from-1]) == at && int64(end-from) < h.N {
		from--
	}
	if from == end || g.group > 1 {
		return s
	}
	eaten := min(int64(end-from), g.excess) // the hits stand for those that were dropped
	g.excess -= eaten
	g.dates = append(g.dates[:from+int(eaten)], g.dates[end:]...)
	return g.write(s, 0, now)
}

// subAt gives back a use of the member if it was used last at the instant.
func (m *members) subAt(s State, now, at Instant, h Hits) State {
	if i := m.find(s, now, h.Member); i >= 0 && memberDate(s, i) == int64(at) {
		return m.sub(s, now, h)
	}
	return s
}

// subAt gives back hits of the cell that the instant is in.
func (w *cells) subAt(s State, now, at Instant, h Hits) State {
	c := readCells(s)
	c.expire(now, w.length)
	i := floorDiv(int64(at), c.width) - c.first
	if c.width != w.width || i < 0 || i >= int64(len(c.cells)) || c.cells[i] == 0 {
		return s
	}
	n := min(h.N, int64(c.cells[i]))
	c.cells[i] -= uint64(n)
	if c.sum -= n; c.sum == 0 {
		return s[:0]
	}
	return c.write(s)
}

// subAt gives back hits of the period that both instants are in. After a clock was
// set back, a calendar period can be later than now.
func (p *period) subAt(s State, now, at Instant, h Hits) State {
	if !p.has(s[0], at) || p.calendar != nil && p.mark(now) != s[0] {
		return s
	}
	return p.sub(s, now, h)
}

func (w *backdatingPeriod) subAt(s State, now, at Instant, h Hits) State {
	if !w.has(s[0], at) || w.calendar != nil && w.mark(now) != s[0] {
		return s
	}
	return w.sub(s, now, h)
}

// subAt gives back what has not drained since: what the hits took, less the
// time that has passed.
func (b *bucket) subAt(s State, now, at Instant, h Hits) State {
	if b.quota == 0 {
		return s
	}
	// In 1/quota µs: n·window - passed·quota.
	hi, lo := bits.Mul64(uint64(h.N), b.length)
	goneHi, goneLo := bits.Mul64(uint64(max(now-at, 0)), uint64(b.quota))
	lo, borrow := bits.Sub64(lo, goneLo, 0)
	hi, borrow = bits.Sub64(hi, goneHi, borrow)
	if borrow > 0 {
		return s
	}
	return b.retreat(s, now, hi, lo)
}
