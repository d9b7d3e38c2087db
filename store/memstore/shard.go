package memstore

import (
	"sync"

	"github.com/weirhq/weir/window"
)

// shard is a part of a table under one lock: a directory of segments, in which
// each key's place follows from the first bits of its hash. A segment that is
// full splits in two by one more bit (extendible hashing: Fagin, Nievergelt,
// Pippenger and Strong, 1979), so growing never touches more than one segment
// and, at times, the directory.
type shard struct {
	mu sync.Mutex

	// All below is guarded by mu.
	dir    []entry // 1<<depth; a segment of less depth has several
	depth  uint8
	hand   int            // the entry to sweep next
	calls  uint8          // since the last call that swept
	tended window.Instant // when that was
	keys   int
	bytes  int64

	// No key expires before earliest; pass is what earliest will be when the
	// hand has been around.
	earliest, pass window.Instant

	scratch [8]uint64 // to work on small states where their block is too small
}

// entry is a segment, with its slots: a call that only needs those has one
// access to memory less, with a million keys a sixth of what a take costs.
type entry struct {
	slots []slot
	*segment
}

// find is the segment and the slot of f; g is nil when there is none.
func (sh *shard) find(f fingerprint) (g *segment, at *slot, ok bool) {
	if len(sh.dir) == 0 {
		return nil, nil, false
	}
	e := &sh.dir[f.prefix(sh.depth)]
	if len(e.slots) == 0 {
		return e.segment, nil, false
	}
	i, ok := find(e.slots, f)
	return e.segment, &e.slots[i], ok
}

// begin gives an empty shard its first segment.
func (sh *shard) begin() {
	sh.dir, sh.depth, sh.hand = make([]entry, 1), 0, 0
	sh.enter(newSegment(0, 0, 0), 0, 1)
	sh.bytes = segmentBytes + entryBytes
	sh.earliest, sh.pass = 0, forever
}

// note remembers when a key in g expires.
func (sh *shard) note(g *segment, expires window.Instant) {
	g.note(expires)
	sh.earliest = min(sh.earliest, expires)
	sh.pass = min(sh.pass, expires)
}

// enter puts g into span entries of the directory.
func (sh *shard) enter(g *segment, first, span int) {
	for i := range span {
		sh.dir[first+i] = entry{g.slots, g}
	}
}

// entries are those of the segment that f belongs to: they share its first
// depth bits.
func (sh *shard) entries(f fingerprint) (first, span int) {
	i := f.prefix(sh.depth)
	span = 1 << (sh.depth - sh.dir[i].depth)
	return i &^ (span - 1), span
}

// remove drops the key f, which g has.
func (sh *shard) remove(g *segment, f fingerprint) {
	i, _ := find(g.slots, f)
	g.remove(i)
	g.pass, sh.earliest = 0, 0 // what moved may have passed the hand
	sh.keys--
}

// tally is what a segment would hold without garbage and expired keys.
type tally struct{ keys, words int }

func (n *tally) add(s window.State) {
	n.keys++
	n.words += class(len(s))
}

// makeRoom reclaims what has expired in the segment of f and then, as needed,
// rebuilds or splits it, so that a key with a block of words may fit.
func (sh *shard) makeRoom(f fingerprint, words int, e expiry) {
	g := sh.dir[f.prefix(sh.depth)].segment
	n, earliest := tally{g.keys, g.live}, g.earliest
	if earliest <= e.horizon {
		n, earliest = sh.purge(g, e)
	}
	const full = maxSlots * 13 / 16
	switch {
	case g.depth < maxDepth && (n.keys >= full || n.words+words > maxLive && n.keys >= manyKeys):
		sh.split(g, f, e)
		return
	case n.keys == g.keys && n.keys < g.room(): // it is the arena that is full
		before := g.bytes()
		g.extend(words)
		sh.bytes += g.bytes() - before
		return
	}
	// A quarter more than needed, so that the next rebuild is far.
	sh.refill(g, f, max(n.keys+1, min(n.keys+n.keys/4+1, full)), n.words+n.words/4+words)
	g.note(earliest)
}

// purge frees the slots of expired keys and leaves holes in the probing: g has
// to be refilled next. It returns what is left.
func (sh *shard) purge(g *segment, e expiry) (left tally, earliest window.Instant) {
	earliest = forever
	before := sh.keys
	for i := range g.slots {
		if g.slots[i].tag == free {
			continue
		}
		state := g.state(i)
		at, over := e.of(state)
		if over {
			g.slots[i].tag = free
			sh.keys--
			continue
		}
		earliest = min(earliest, at)
		left.add(state)
	}
	if sh.keys < before {
		e.raise()
	}
	return left, earliest
}

// reclaim drops the expired keys of g, which f belongs to, at once and says how
// many they were.
func (sh *shard) reclaim(g *segment, f fingerprint, e expiry) int {
	before := sh.keys
	n, earliest := sh.purge(g, e)
	sh.refill(g, f, n.keys, n.words)
	g.note(earliest)
	return before - sh.keys
}

// refill rebuilds g, which f belongs to, in new arrays.
func (sh *shard) refill(g *segment, f fingerprint, keys, words int) {
	first, span := sh.entries(f)
	sh.refillAt(g, first, span, keys, words)
}

// refillAt rebuilds g, which is in span entries of the directory.
func (sh *shard) refillAt(g *segment, first, span, keys, words int) {
	old := *g
	g.allocate(keys, words)
	sh.bytes += g.bytes() - old.bytes()
	for i := range old.slots {
		if old.slots[i].tag != free {
			g.adopt(&old, i)
		}
	}
	sh.enter(g, first, span)
}

// adopt copies the key in slot i of old, which g does not have.
func (g *segment) adopt(old *segment, i int) {
	f := old.slots[i].tag.key()
	at, _ := find(g.slots, f)
	g.put(&g.slots[at], f, old.state(i))
}

// split shares the keys of g, which f belongs to, among two segments.
func (sh *shard) split(g *segment, f fingerprint, e expiry) {
	if g.depth == sh.depth {
		sh.double()
	}
	var n [2]tally
	half := func(f fingerprint) int { return f.prefix(g.depth+1) & 1 }
	for i := range g.slots {
		if t := g.slots[i].tag; t != free {
			n[half(t.key())].add(g.state(i))
		}
	}
	var to [2]*segment
	for k := range to {
		to[k] = newSegment(g.depth+1, n[k].keys+n[k].keys/8+1, n[k].words+n[k].words/8+1)
		sh.bytes += segmentBytes + to[k].bytes()
	}
	sh.bytes -= segmentBytes + g.bytes()
	for i := range g.slots {
		if t := g.slots[i].tag; t != free {
			k := half(t.key())
			to[k].adopt(g, i)
			to[k].note(e.limit.Expires(g.state(i)))
		}
	}
	first, span := sh.entries(f)
	sh.enter(to[0], first, span/2)
	sh.enter(to[1], first+span/2, span/2)
}

// double gives each entry of the directory a twin.
func (sh *shard) double() {
	dir := make([]entry, 2*len(sh.dir))
	for i, e := range sh.dir {
		dir[2*i], dir[2*i+1] = e, e
	}
	sh.bytes += int64(len(sh.dir)) * entryBytes
	sh.dir = dir
	sh.depth++
	sh.hand *= 2
}
