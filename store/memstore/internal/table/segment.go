package table

import "slices"

const (
	minSlots = 4
	maxSlots = 512                // a segment with more keys than fit splits
	maxKeys  = maxSlots * 13 / 16 // that fit

	// maxLive is the most words that the blocks of a segment have before it
	// splits, 64 KiB. A segment of fewer than manyKeys keys is not split: a
	// table of huge states would be all directory.
	maxLive  = 8192
	manyKeys = 8
)

// segment is a hash table of a few hundred keys at most: slots that are probed
// linearly, and an arena.
type segment struct {
	slots []slot // none, or at least one is free
	arena arena
	keys  int   // Invariant: the number of slots that are not free, at most capacity()
	depth uint8 // bits of the hash that all keys here share
	cycle cycle // over the slots
}

// What the parts of a table take, in bytes.
const (
	slotBytes    = 32
	segmentBytes = 128
	entryBytes   = 32
)

// newSegment returns an empty segment with room for keys and for words in
// blocks.
func newSegment(depth uint8, keys, words int) *segment {
	g := &segment{depth: depth}
	g.allocate(keys, words, forever)
	return g
}

// allocate gives g empty slots and an empty arena, with room for keys and
// words. None of the keys that g will have expires before earliest.
func (g *segment) allocate(keys, words int, earliest int64) {
	g.slots, g.arena, g.keys, g.cycle = nil, arena{}, 0, newCycle(earliest)
	if keys == 0 {
		return
	}
	// What the allocator rounds up to is used.
	slots := slices.Grow(g.slots, max(minSlots, keys*16/13+1))
	g.slots = slots[:cap(slots)]
	g.arena.words = slices.Grow(g.arena.words, words)
}

// capacity returns how many keys fit: 13/16 of the slots.
func (g *segment) capacity() int { return len(g.slots) * 13 / 16 }

// bytes returns what g takes.
func (g *segment) bytes() int64 {
	return segmentBytes + int64(len(g.slots))*slotBytes + int64(cap(g.arena.words))*8
}

// next returns the index of the slot behind slot i.
func (g *segment) next(i int) int {
	if i++; i == len(g.slots) {
		return 0
	}
	return i
}

// distance returns how many steps lead from slot i to slot j.
func (g *segment) distance(i, j int) int {
	if j < i {
		return j - i + len(g.slots)
	}
	return j - i
}

// state returns the state in s, with the capacity that it has there.
func (g *segment) state(s *slot) []uint64 {
	n := s.tag.words()
	if n == away {
		return g.arena.state(s.block())
	}
	return s.words[:n:inline]
}

// put makes words the state of h in at, which find returned; nil where there
// are no slots. It reports false when g is full.
func (g *segment) put(at *slot, h Hash, words []uint64) bool {
	if at == nil {
		return false
	}
	known := at.tag != free
	if !known && g.keys >= g.capacity() {
		return false
	}
	if len(words) <= inline {
		g.releaseBlock(at)
		at.tag = tagOf(h, len(words))
		copy(at.words[:], words)
	} else if !g.putAway(at, h, words) {
		return false
	}
	if !known {
		g.keys++
	}
	return true
}

// putAway writes words to a block. It reports false when the arena is full.
func (g *segment) putAway(at *slot, h Hash, words []uint64) bool {
	var b block
	if at.tag.words() == away {
		b = at.block()
	}
	if len(words) > b.cap {
		size := grown(b.cap, len(words))
		off, ok := g.arena.cut(size)
		if !ok {
			return false
		}
		g.releaseBlock(at)
		b = block{off: off, cap: size}
	}
	b.len = len(words)
	copy(g.arena.words[b.off:], words)
	at.tag = tagOf(h, away)
	at.point(b)
	return true
}

// releaseBlock frees the block of s, if it has one.
func (g *segment) releaseBlock(s *slot) {
	if s.tag.words() == away {
		g.arena.release(s.block())
	}
}

// remove frees slot i, and moves back the keys behind it that would not be
// found past a free slot.
func (g *segment) remove(i int) {
	g.keys--
	g.releaseBlock(&g.slots[i])
	for j := g.next(i); g.slots[j].tag != free; j = g.next(j) {
		if home := g.slots[j].tag.hash().slot(len(g.slots)); g.distance(home, j) >= g.distance(i, j) {
			g.slots[i] = g.slots[j]
			i = j
		}
	}
	g.slots[i] = slot{}
}

// copySlot copies the key in s, a slot of old, which g does not have.
func (g *segment) copySlot(old *segment, s *slot) {
	h := s.tag.hash()
	at, _ := find(g.slots, h)
	g.put(&g.slots[at], h, old.state(s))
}

// copyAll copies all keys of old, none of which g has.
func (g *segment) copyAll(old *segment) {
	for i := range old.slots {
		if s := &old.slots[i]; s.tag != free {
			g.copySlot(old, s)
		}
	}
}

// extend makes the arena larger, so that a block of the given number of words fits, and
// by a quarter, or up to 128 words where it has that many. It compacts an arena of which
// over a quarter is unused.
func (g *segment) extend(words int) {
	const least, few = 32, 128
	old := g.arena.words
	compact := (len(old)-g.arena.live)*4 > len(old)
	size := len(old)
	if compact {
		size = g.arena.live
	}
	g.arena.words = slices.Grow([]uint64(nil), size+max(size/4, min(size, few))+max(words, least))
	if !compact {
		g.arena.words = append(g.arena.words, old...)
		return
	}
	g.arena.released = freeLists{}
	for i := range g.slots {
		if s := &g.slots[i]; s.tag.words() == away {
			b := s.block()
			from := old[b.off : b.off+b.cap]
			b.off = len(g.arena.words)
			g.arena.words = append(g.arena.words, from...)
			s.point(b)
		}
	}
}

// thin reports whether g needs less than a quarter of its slots or its arena.
func (g *segment) thin() bool {
	return g.keys*4 < len(g.slots) && len(g.slots) > 2*minSlots ||
		g.arena.live*4 < cap(g.arena.words) && cap(g.arena.words) > 64
}

// need is what the keys of a segment need, without released blocks.
type need struct{ keys, words int }

// add adds a key with the given state.
func (n *need) add(state []uint64) {
	n.keys++
	n.words += class(len(state))
}

// need returns what the keys of g need.
func (g *segment) need() (n need) {
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			n.add(g.state(s))
		}
	}
	return n
}
