package memstore

// Sweep looks at n slots at most, going round all tables in turn, and reclaims
// the expired keys among them; it returns how many. Calls do that as they go:
// it is for keys that nobody asks about any more. Where there is less to look
// at than n, it stops after one round.
func (s *Store) Sweep(n int) (reclaimed int) {
	m := s.clock.read()
	for steps := s.tables.round(); n > 0 && steps > 0; steps-- {
		got, looked := s.sweepNext(m, min(n, maxSlots))
		reclaimed += got
		n -= max(looked, 1)
	}
	return reclaimed
}

// sweepNext looks at n slots at most of the shard whose turn it is.
func (s *Store) sweepNext(m moment, n int) (reclaimed, looked int) {
	t, sh := s.tables.next(m.steady)
	if sh == nil {
		return 0, 0
	}
	e := s.clock.expiry(m, t.limit.Load())
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return t.sweep(sh, n, e)
}

// sweep looks at n slots at most and reclaims the expired keys among them. The
// hand goes through all segments in turn; one in which no key can have expired
// counts as one slot. Where it leaves a segment that has become thin, that one
// is made smaller.
func (sh *shard) sweep(n int, e expiry) (reclaimed, looked int) {
	for looked < n && len(sh.dir) > 0 {
		if sh.hand >= len(sh.dir) {
			sh.hand = 0
		}
		g := sh.dir[sh.hand]
		if e.horizon < g.earliest {
			looked++
			sh.leave(g)
			continue
		}
		for looked < n && g.hand < len(g.slots) {
			looked++
			if g.slots[g.hand].cap == 0 {
				g.hand++
				continue
			}
			at, over := e.of(g.state(g.hand))
			if over {
				g.remove(g.hand) // another one may have moved here
				sh.keys--
				reclaimed++
				continue
			}
			g.pass = min(g.pass, at)
			g.hand++
		}
		if g.hand >= len(g.slots) {
			g.earliest, g.pass, g.hand = g.pass, forever, 0
			sh.leave(g)
		}
	}
	if reclaimed > 0 {
		e.raise()
	}
	return reclaimed, looked
}

// sweep sweeps sh, which is locked, and keeps count of the keys.
func (t *table) sweep(sh *shard, n int, e expiry) (reclaimed, looked int) {
	reclaimed, looked = sh.sweep(n, e)
	if reclaimed > 0 {
		t.keys.Add(int64(-reclaimed))
	}
	return reclaimed, looked
}

// leave moves the hand past g, and gives back memory that g does not need.
func (sh *shard) leave(g *segment) {
	span := 1 << (sh.depth - g.depth)
	first := sh.hand &^ (span - 1)
	sh.hand = first + span
	switch {
	case sh.keys == 0:
		sh.dir, sh.depth, sh.hand, sh.bytes = nil, 0, 0, 0
	case g.depth > 0 && sh.merge(first, span):
	case g.thin():
		earliest := g.earliest
		sh.refill(g, g.keys, g.liveWords())
		g.earliest = earliest
	}
}

// liveWords is how many words the blocks of g need.
func (g *segment) liveWords() int {
	var n tally
	for i := range g.slots {
		if s := &g.slots[i]; s.cap > 0 {
			n.add(s)
		}
	}
	return n.words
}

// merge makes the segment at the directory's entry first and the other half
// that it was split from one again, when both together are small.
func (sh *shard) merge(first, span int) bool {
	g, other := sh.dir[first], sh.dir[first^span]
	if other.depth != g.depth || g.keys+other.keys > maxSlots/4 || g.live+other.live > maxLive/4 {
		return false
	}
	to := newSegment(g.depth-1, g.keys+other.keys, g.liveWords()+other.liveWords())
	to.earliest = min(g.earliest, other.earliest)
	for _, from := range [...]*segment{g, other} {
		for i := range from.slots {
			if from.slots[i].cap > 0 {
				to.adopt(from, i)
			}
		}
		sh.bytes -= segmentBytes + from.bytes()
	}
	sh.bytes += segmentBytes + to.bytes()
	pair := first &^ span
	for i := range 2 * span {
		sh.dir[pair+i] = to
	}
	return true
}
