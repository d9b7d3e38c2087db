package table

// begin gives an empty table its first segment.
func (t *Table) begin() {
	*t = Table{dir: make([]entry, 1), bytes: entryBytes, cycle: newCycle(forever)}
	g := newSegment(0, 0, 0)
	t.bytes += g.bytes()
	t.enter(g, 0, 1)
}

// enter puts g into span entries of the directory.
func (t *Table) enter(g *segment, first, span int) {
	for i := range span {
		t.dir[first+i] = entry{g.slots, g}
	}
}

// entries returns the entries of the segment that h belongs to.
func (t *Table) entries(h Hash) (first, span int) {
	i := h.prefix(t.depth)
	span = 1 << (t.depth - t.dir[i].depth)
	return i &^ (span - 1), span
}

// freeSlots drops what has expired in the segment of h and then, as needed,
// rebuilds or splits it, so that a key with a block of the given number of
// words may fit. It returns how many keys it dropped. After a few calls at most
// the key does fit.
func (t *Table) freeSlots(h Hash, words int, e Expiry) (reclaimed int) {
	g, before := t.dir[h.prefix(t.depth)].segment, t.keys
	n, earliest := need{g.keys, g.arena.live}, g.cycle.earliest
	if earliest <= e.Horizon {
		n, earliest = t.purge(g, e)
	}
	switch {
	case g.depth < maxDepth && (n.keys >= maxKeys || n.words+words > maxLive && n.keys >= manyKeys):
		t.split(g, h, e)
	case n.keys == g.keys && n.keys < g.capacity(): // it is the arena that is full
		t.bytes -= g.bytes()
		g.extend(words)
		t.bytes += g.bytes()
	default:
		// A quarter more than needed, so that the next rebuild is far.
		n.keys = max(n.keys+1, min(n.keys+n.keys/4+1, maxKeys))
		n.words += n.words/4 + words
		t.refill(g, h, n, earliest)
	}
	return before - t.keys
}

// purge frees the slots of expired keys and leaves holes in the probing: g has
// to be refilled or split next. g.keys and its arena are not brought up to
// date. It returns what is left, and a bound for when that expires.
func (t *Table) purge(g *segment, e Expiry) (left need, earliest int64) {
	earliest = forever
	for i := range g.slots {
		s := &g.slots[i]
		if s.tag == free {
			continue
		}
		state := g.state(s)
		at, over := e.of(state)
		if over {
			s.tag = free
			t.keys--
			continue
		}
		earliest = min(earliest, at)
		left.add(state)
	}
	return left, earliest
}

// refill rebuilds g, which h belongs to, with room for n. No key of g expires
// before earliest.
func (t *Table) refill(g *segment, h Hash, n need, earliest int64) {
	first, span := t.entries(h)
	t.refillAt(g, first, span, n, earliest)
}

// refillAt rebuilds g in span entries of the directory.
func (t *Table) refillAt(g *segment, first, span int, n need, earliest int64) {
	old := *g
	g.allocate(n.keys, n.words, earliest)
	t.bytes += g.bytes() - old.bytes()
	g.copyAll(&old)
	t.enter(g, first, span)
}

// split shares the keys of g, which h belongs to, among two segments.
func (t *Table) split(g *segment, h Hash, e Expiry) {
	if g.depth == t.depth {
		t.double()
	}
	half := func(s *slot) int { return s.tag.hash().prefix(g.depth+1) & 1 }
	var n [2]need
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			n[half(s)].add(g.state(s))
		}
	}
	var to [2]*segment
	for k := range to {
		to[k] = newSegment(g.depth+1, n[k].keys+n[k].keys/8+1, n[k].words+n[k].words/8+1)
		t.bytes += to[k].bytes()
	}
	t.bytes -= g.bytes()
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			k := half(s)
			to[k].copySlot(g, s)
			at, _ := e.of(g.state(s))
			to[k].cycle.touch(at)
		}
	}
	first, span := t.entries(h)
	t.enter(to[0], first, span/2)
	t.enter(to[1], first+span/2, span/2)
}

// double copies each entry of the directory.
func (t *Table) double() {
	dir := make([]entry, 2*len(t.dir))
	for i, e := range t.dir {
		dir[2*i], dir[2*i+1] = e, e
	}
	t.bytes += int64(len(t.dir)) * entryBytes
	t.dir = dir
	t.depth++
	t.cycle.hand *= 2
}
