package table

// Budget is how many slots a sweep looks at: N, and up to Most as long as at
// least one in four of them was reclaimed.
type Budget struct{ N, Most int }

func (b Budget) spent(w Walk) bool {
	return w.Looked >= b.Most || w.Looked >= b.N && w.Reclaimed*4 < w.Looked
}

// Walk is what a sweep did.
type Walk struct {
	Reclaimed int // expired keys that were dropped
	Looked    int // slots, or what cost as much
	Passed    int // entries of the directory that the hand went past
}

// skipped is how many slots cost as much as a segment in which no key has
// expired.
const skipped = 4

// Entries returns the size of the directory: a sweep that has passed as many
// entries has been around.
func (t *Table) Entries() int { return len(t.dir) }

// Sweep looks at the slots that b allows, from where the last sweep ended, and
// drops the expired keys among them. It goes around once at most. A table in
// which no key has expired costs as much as one slot, and an empty one nothing.
func (t *Table) Sweep(b Budget, e Expiry) (w Walk) {
	if len(t.dir) > 0 && e.Horizon < t.cycle.earliest {
		return Walk{Looked: 1, Passed: len(t.dir)}
	}
	for !b.spent(w) && w.Passed <= len(t.dir) && len(t.dir) > 0 {
		g := t.dir[t.cycle.hand].segment
		if e.Horizon < g.cycle.earliest {
			w.Looked += skipped
		} else if !t.scan(g, b, e, &w) {
			break
		}
		w.Passed += t.advance(g)
	}
	return w
}

// scan drops expired keys of g from where its hand is. It reports whether the
// hand went around before b was spent.
func (t *Table) scan(g *segment, b Budget, e Expiry, w *Walk) bool {
	for r := &g.cycle; r.hand < len(g.slots); {
		if b.spent(*w) {
			return false
		}
		w.Looked++
		s := &g.slots[r.hand]
		if s.tag == free {
			r.hand++
			continue
		}
		at, over := e.of(g.state(s))
		if over {
			g.remove(r.hand) // another key may have moved here
			t.keys--
			w.Reclaimed++
			continue
		}
		r.skip(at)
		r.hand++
	}
	g.cycle.next()
	return true
}

// advance moves the hand past g and gives back memory that g does not need. It
// returns how many entries the hand passed.
func (t *Table) advance(g *segment) int {
	span := 1 << (t.depth - g.depth)
	first := t.cycle.hand &^ (span - 1)
	t.cycle.hand = first + span
	t.cycle.skip(g.cycle.earliest)
	if t.cycle.hand == len(t.dir) {
		t.cycle.next()
	}
	switch {
	case t.keys == 0:
		*t = Table{}
	case g.depth > 0 && t.merge(first, span):
	case g.thin():
		t.refillAt(g, first, span, need{g.keys, g.need().words}, g.cycle.earliest)
	}
	return span
}

// merge makes one segment of the one at the directory's entry first and its
// other half, when both together are small. It reports whether they were.
func (t *Table) merge(first, span int) bool {
	g, other := t.dir[first].segment, t.dir[first^span].segment
	if g.keys > maxSlots/4 || other.depth != g.depth ||
		g.keys+other.keys > maxSlots/4 || g.arena.live+other.arena.live > maxLive/4 {
		return false
	}
	n, m := g.need(), other.need()
	to := newSegment(g.depth-1, n.keys+m.keys, n.words+m.words)
	to.cycle = newCycle(min(g.cycle.earliest, other.cycle.earliest))
	to.copyAll(g)
	to.copyAll(other)
	t.bytes += to.bytes() - g.bytes() - other.bytes()
	t.enter(to, first&^span, 2*span)
	return true
}
