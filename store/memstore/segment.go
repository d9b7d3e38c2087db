package memstore

import (
	"math"
	"math/bits"
	"slices"

	"github.com/weirhq/weir/window"
)

const (
	minSlots = 4
	maxSlots = 512 // a segment with more keys than fit splits

	// maxLive is the most words that the blocks of a segment may have before it
	// splits, 64 KiB; but not below manyKeys, or a shard of huge states would
	// be all directory.
	maxLive  = 8192
	manyKeys = 8

	forever = window.Instant(math.MaxInt64)
)

// segment is a small hash table of its own: slots probed linearly, and an
// arena of blocks for the states that are too large for their slot. A block
// that is too small is left behind for another state.
type segment struct {
	slots []slot
	words []uint64 // len is what is used
	keys  int
	live  int   // words in blocks that slots point to
	depth uint8 // bits of the hash that all keys here share

	// left are the blocks of each size that were left behind: one more than
	// where the first one starts, which holds the same for the next one; 0 ends
	// the list. Larger ones wait until the blocks move together.
	left [9]uint32

	// hand is the next slot to sweep. No key expires before earliest; pass is
	// what earliest will be when the hand has been around.
	hand           int
	earliest, pass window.Instant
}

func newSegment(depth uint8, keys, words int) *segment {
	g := &segment{depth: depth, earliest: forever, pass: forever}
	g.allocate(keys, words)
	return g
}

// allocate gives g empty slots for keys and an arena for words.
func (g *segment) allocate(keys, words int) {
	g.slots, g.words, g.keys, g.live = nil, nil, 0, 0
	clear(g.left[:])
	g.hand, g.earliest, g.pass = 0, forever, forever
	if keys == 0 {
		return
	}
	// What the allocator would round up to is used.
	slots := slices.Grow(g.slots, max(minSlots, keys*16/13+1))
	g.slots = slots[:cap(slots)]
	g.words = slices.Grow(g.words, words)
}

// room is how many keys fit: 13/16 of the slots.
func (g *segment) room() int { return len(g.slots) * 13 / 16 }

// bytes is what the arrays of g take.
func (g *segment) bytes() int64 { return int64(len(g.slots))*slotBytes + int64(cap(g.words))*8 }

const (
	slotBytes    = 32
	segmentBytes = 128
	entryBytes   = 32
)

// find is the slot of f among slots, or the free slot where it would go. There
// is always a free one.
func find(slots []slot, f fingerprint) (int, bool) {
	for i := f.slot(len(slots)); ; {
		switch tag := slots[i].tag; {
		case tag.is(f):
			return i, true
		case tag == free:
			return i, false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

func (g *segment) next(i int) int {
	if i++; i == len(g.slots) {
		return 0
	}
	return i
}

// state is the state in slot i, with the capacity that it has there.
func (g *segment) state(i int) window.State { return g.stateOf(&g.slots[i]) }

// stateOf is the state in s.
func (g *segment) stateOf(s *slot) window.State {
	if n := s.tag.words(); n != away {
		return s.words[:n:inline]
	}
	b := s.block()
	return g.words[b.off : b.off+b.cap : b.off+b.cap][:b.len]
}

// resize says that the state in s, changed in place, has n words now.
func (s *slot) resize(n int) {
	if s.tag.words() != away {
		s.tag = s.tag.with(n)
		return
	}
	b := s.block()
	b.len = n
	s.point(b)
}

// put makes s the state of the key f in at, which is where find said, nil where
// there are no slots. It is false when there is no room.
func (g *segment) put(at *slot, f fingerprint, s window.State) bool {
	if at == nil {
		return false
	}
	known := at.tag != free
	if !known && g.keys >= g.room() {
		return false
	}
	if len(s) <= inline {
		g.drop(at)
		at.tag = tagOf(f, len(s))
		copy(at.words[:], s)
	} else if !g.putAway(at, f, s) {
		return false
	}
	if !known {
		g.keys++
	}
	return true
}

// putAway writes s to a block.
func (g *segment) putAway(at *slot, f fingerprint, s window.State) bool {
	var b block
	if at.tag.words() == away {
		b = at.block()
	}
	if len(s) > b.cap {
		size := class(len(s))
		off, ok := g.blockOf(size)
		if !ok {
			return false
		}
		g.drop(at)
		g.live += size
		b = block{off: off, cap: size}
	}
	b.len = len(s)
	copy(g.words[b.off:], s)
	at.tag = tagOf(f, away)
	at.point(b)
	return true
}

// blockOf is where a block of size words starts: one that was left behind, if
// there is one.
func (g *segment) blockOf(size int) (off int, ok bool) {
	if size < len(g.left) && g.left[size] > 0 {
		off = int(g.left[size]) - 1
		g.left[size] = uint32(g.words[off])
		return off, true
	}
	off = len(g.words)
	if off+size > cap(g.words) {
		return 0, false
	}
	g.words = g.words[:off+size]
	return off, true
}

// extend makes the arena larger, by a quarter and so that a block of words
// fits. Where a quarter of it is not used, the blocks move together.
func (g *segment) extend(words int) {
	const least = 32
	old := g.words
	compact := (len(old)-g.live)*4 > len(old)
	size := len(old)
	if compact {
		size = g.live
	}
	g.words = slices.Grow([]uint64(nil), size+size/4+max(words, least))
	if !compact {
		g.words = append(g.words, old...)
		return
	}
	clear(g.left[:])
	for i := range g.slots {
		if s := &g.slots[i]; s.tag.words() == away {
			b := s.block()
			from := old[b.off : b.off+b.cap]
			b.off = len(g.words)
			g.words = append(g.words, from...)
			s.point(b)
		}
	}
}

// drop leaves the block of s behind, if it has one.
func (g *segment) drop(s *slot) {
	if s.tag.words() != away {
		return
	}
	b := s.block()
	g.live -= b.cap
	if b.cap < len(g.left) {
		g.words[b.off] = uint64(g.left[b.cap])
		g.left[b.cap] = uint32(b.off) + 1
	}
}

// note remembers when a key expires.
func (g *segment) note(expires window.Instant) {
	g.earliest = min(g.earliest, expires)
	g.pass = min(g.pass, expires)
}

// remove frees slot i, and moves back what stands behind it because of it.
func (g *segment) remove(i int) {
	g.keys--
	g.drop(&g.slots[i])
	for j := g.next(i); g.slots[j].tag != free; j = g.next(j) {
		if home := g.slots[j].tag.key().slot(len(g.slots)); g.distance(home, j) >= g.distance(i, j) {
			g.slots[i] = g.slots[j]
			i = j
		}
	}
	g.slots[i] = slot{}
}

// distance is how many steps lead from slot i to slot j.
func (g *segment) distance(i, j int) int {
	if j < i {
		return j - i + len(g.slots)
	}
	return j - i
}

// thin says that most of g's memory is not needed.
func (g *segment) thin() bool {
	return g.keys*4 < len(g.slots) && len(g.slots) > 2*minSlots ||
		g.live*4 < cap(g.words) && cap(g.words) > 64
}

// class is the size of the block for a state of n words, 0 where it fits in its
// slot: up to 8 just n, then 10, 12, 14, 16, 20, 24, and so on, four sizes to
// each power of two; less than a fifth of it is not used.
func class(n int) int {
	switch {
	case n <= inline:
		return 0
	case n <= 8:
		return n
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) / step * step
}
