package memstore

import (
	"math"
	"math/bits"
	"slices"

	"github.com/weirhq/weir/window"
)

const (
	minSlots = 4
	maxSlots = 1024 // a segment with more keys than fit splits

	// maxLive is the most words that a segment's states may have before it
	// splits, 64 KiB; but not below manyKeys, or a shard of huge states would
	// be all directory.
	maxLive  = 8192
	manyKeys = 8

	forever = window.Instant(math.MaxInt64)
)

// slot says where the state of one key is. A slot without capacity is free.
type slot struct {
	key      fingerprint
	off      uint32 // in the segment's words
	len, cap uint16 // of the state and of its block, in words
}

// segment is a small hash table of its own: slots probed linearly, and an
// arena that the states' blocks are cut from. A block that is too small is left
// behind for another state; when the arena is used up, the segment is rebuilt
// without what nothing uses.
type segment struct {
	slots []slot
	words []uint64 // len is what is used
	keys  int
	live  int   // words in blocks that slots point to
	depth uint8 // bits of the hash that all keys here share

	// left are the blocks of each size that were left behind: one more than
	// where the first one starts, which holds the same for the next one; 0 ends
	// the list. Larger ones wait for the segment to be rebuilt.
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
	slotBytes    = 16
	segmentBytes = 144
)

// find is the slot of f, or the free slot where it would go.
func (g *segment) find(f fingerprint) (int, bool) {
	if len(g.slots) == 0 {
		return 0, false
	}
	for i := f.slot(len(g.slots)); ; i = g.next(i) {
		switch s := &g.slots[i]; {
		case s.cap == 0:
			return i, false
		case s.key == f:
			return i, true
		}
	}
}

func (g *segment) next(i int) int {
	if i++; i == len(g.slots) {
		return 0
	}
	return i
}

// state is the state in slot i, with the capacity of its block.
func (g *segment) state(i int) window.State {
	s := &g.slots[i]
	end := int(s.off) + int(s.cap)
	return g.words[s.off:end:end][:s.len]
}

// put makes s the state of the key f, whose slot i is where find said. It is
// false when there is no room.
func (g *segment) put(i int, f fingerprint, s window.State) bool {
	if len(g.slots) == 0 {
		return false
	}
	at := &g.slots[i]
	if len(s) <= int(at.cap) {
		at.len = uint16(len(s))
		copy(g.state(i), s)
		return true
	}
	if at.cap == 0 && g.keys >= g.room() {
		return false
	}
	size := class(len(s))
	off, ok := g.block(size)
	if !ok {
		return false
	}
	if at.cap == 0 {
		g.keys++
	} else {
		g.drop(*at)
	}
	g.live += size
	copy(g.words[off:], s)
	*at = slot{f, uint32(off), uint16(len(s)), uint16(size)}
	return true
}

// block is a block of size words, one that was left behind if there is one.
func (g *segment) block(size int) (off int, ok bool) {
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

// drop leaves the block of s behind.
func (g *segment) drop(s slot) {
	g.live -= int(s.cap)
	if int(s.cap) < len(g.left) {
		g.words[s.off] = uint64(g.left[s.cap])
		g.left[s.cap] = s.off + 1
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
	g.drop(g.slots[i])
	for j := g.next(i); g.slots[j].cap > 0; j = g.next(j) {
		if home := g.slots[j].key.slot(len(g.slots)); g.distance(home, j) >= g.distance(i, j) {
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

// class is the size of the block for a state of n words: up to 8 just that,
// then 10, 12, 14, 16, 20, 24, and so on, four sizes to each power of two; less
// than a fifth of it is not used.
func class(n int) int {
	if n <= 8 {
		return n
	}
	step := 1 << (bits.Len(uint(n-1)) - 3)
	return (n + step - 1) / step * step
}
