package memstore

// Sweep looks at n slots at most, going round all tables in turn, and reclaims
// the expired keys among them; it returns how many. Calls do that as they go:
// it is for keys that nobody asks about any more. Where there is less to look
// at than n, it stops after one round. It holds no lock for longer than it takes
// to look at a thousand slots.
func (s *Store) Sweep(n int) (reclaimed int) {
	m := s.clock.read(true)
	for steps := s.tables.round(); n > 0 && steps > 0; steps-- {
		t, sh := s.tables.next(m.steady)
		if sh == nil {
			continue
		}
		e := s.clock.expiry(m, t)
		passed, entries := 0, 1
		for n > 0 && passed <= entries {
			sh.mu.Lock()
			w := t.sweep(sh, budget{min(n, maxSlots), min(n, maxSlots)}, e)
			passed, entries = passed+w.passed, len(sh.dir)
			sh.mu.Unlock()
			n -= w.looked
			reclaimed += w.reclaimed
			if w.looked == 0 { // the shard is empty
				break
			}
		}
	}
	return reclaimed
}

// budget is how many slots a sweep looks at: n, and up to most as long as one
// in four of them was reclaimed.
type budget struct{ n, most int }

// What a call sweeps. While ten million keys expire, 9,999 of 10,000 calls take
// less than 40 microseconds; see docs/benchmarks.md.
const (
	aFew      = 32
	manySlots = 1024
)

func (b budget) spent(w walk) bool {
	return w.looked >= b.most || w.looked >= b.n && w.reclaimed*4 < w.looked
}

// sweepNext sweeps the shard whose turn it is.
func (s *Store) sweepNext() {
	m := s.clock.read(true)
	t, sh := s.tables.next(m.steady)
	if sh == nil || !sh.mu.TryLock() {
		return
	}
	defer sh.mu.Unlock()
	t.sweep(sh, budget{aFew, manySlots}, s.clock.expiry(m, t))
}

// walk is what a sweep did.
type walk struct {
	reclaimed int // keys
	looked    int // slots
	passed    int // directory entries
}

// sweep looks at the slots that b allows and reclaims the expired keys among
// them. The hand goes through all segments in turn, once round at most; one in
// which no key can have expired costs about as much as four slots, and a shard
// of those as one.
func (sh *shard) sweep(b budget, e expiry) (w walk) {
	if len(sh.dir) == 0 {
		return walk{}
	}
	if e.horizon < sh.earliest {
		return walk{looked: 1, passed: len(sh.dir)}
	}
	for !b.spent(w) && w.passed <= len(sh.dir) && len(sh.dir) > 0 {
		if sh.hand >= len(sh.dir) {
			sh.hand = 0
		}
		g := sh.dir[sh.hand].segment
		if e.horizon < g.earliest {
			w.looked += 4
			w.passed += sh.leave(g)
			continue
		}
		for !b.spent(w) && g.hand < len(g.slots) {
			w.looked++
			if g.slots[g.hand].tag == free {
				g.hand++
				continue
			}
			at, over := e.of(g.state(g.hand))
			if over {
				g.remove(g.hand) // another one may have moved here
				sh.keys--
				w.reclaimed++
				continue
			}
			g.pass = min(g.pass, at)
			g.hand++
		}
		if g.hand >= len(g.slots) {
			g.earliest, g.pass, g.hand = g.pass, forever, 0
			w.passed += sh.leave(g)
		}
	}
	if w.reclaimed > 0 {
		e.raise()
	}
	return w
}

// sweep sweeps sh, which is locked, and keeps count of the keys.
func (t *table) sweep(sh *shard, b budget, e expiry) walk {
	w := sh.sweep(b, e)
	if w.reclaimed > 0 {
		t.keys.Add(int64(-w.reclaimed))
	}
	return w
}

// sweepAround sweeps the shards of t that nobody holds in turn, n slots in all.
func (t *table) sweepAround(n int, e expiry) (reclaimed int) {
	for range t.shards {
		sh := t.shards[int(t.turn.Add(1))&(len(t.shards)-1)].Load()
		if sh == nil || !sh.mu.TryLock() {
			continue
		}
		w := t.sweep(sh, budget{n, n}, e)
		sh.mu.Unlock()
		reclaimed += w.reclaimed
		if n -= w.looked; n <= 0 {
			break
		}
	}
	return reclaimed
}

// leave moves the hand past g, gives back memory that g does not need, and
// says how many entries it passed.
func (sh *shard) leave(g *segment) int {
	span := 1 << (sh.depth - g.depth)
	first := sh.hand &^ (span - 1)
	sh.hand = first + span
	sh.pass = min(sh.pass, g.earliest)
	if sh.hand == len(sh.dir) {
		sh.earliest, sh.pass = sh.pass, forever
	}
	switch {
	case sh.keys == 0:
		sh.dir, sh.depth, sh.hand, sh.bytes = nil, 0, 0, 0
	case g.depth > 0 && sh.merge(first, span):
	case g.thin():
		earliest := g.earliest
		n := g.liveWords()
		sh.refillAt(g, first, span, g.keys, n)
		g.earliest = earliest
	}
	return span
}

// liveWords is how many words the blocks of g need.
func (g *segment) liveWords() int {
	var n tally
	for i := range g.slots {
		if g.slots[i].tag != free {
			n.add(g.state(i))
		}
	}
	return n.words
}

// merge makes the segment at the directory's entry first and the other half
// that it was split from one again, when both together are small.
func (sh *shard) merge(first, span int) bool {
	g, other := sh.dir[first].segment, sh.dir[first^span].segment
	if g.keys > maxSlots/4 || other.depth != g.depth || g.keys+other.keys > maxSlots/4 || g.live+other.live > maxLive/4 {
		return false
	}
	to := newSegment(g.depth-1, g.keys+other.keys, g.liveWords()+other.liveWords())
	to.earliest = min(g.earliest, other.earliest)
	for _, from := range [...]*segment{g, other} {
		for i := range from.slots {
			if from.slots[i].tag != free {
				to.adopt(from, i)
			}
		}
		sh.bytes -= segmentBytes + from.bytes()
	}
	sh.bytes += segmentBytes + to.bytes()
	pair := first &^ span
	sh.enter(to, pair, 2*span)
	return true
}

// reclaim looks for expired keys in a full table: in the segment g of the shard
// that is locked, and a few elsewhere.
func (t *table) reclaim(sh *shard, g *segment, f fingerprint, e expiry) bool {
	n := 0
	if g != nil && g.earliest <= e.horizon {
		n = sh.reclaim(g, f, e)
		t.keys.Add(int64(-n))
	}
	return n+t.sweepAround(2*aFew, e) > 0
}
