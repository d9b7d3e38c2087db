package table

import "math/bits"

// arena holds the states of a segment that are too large for their slots. A
// state that outgrows its block gets another one, and releases its own.
type arena struct {
	words []uint64 // len is what blocks were cut from, cap is what there is

	// live is the number of words in blocks that slots point to.
	// Invariant: live <= len(words).
	live int

	released freeLists
}

// block is where a state is in an arena.
// Invariant: inline < len <= cap, and cap is a class.
type block struct{ off, len, cap int }

// state returns the state in b, with the capacity of its block.
func (a *arena) state(b block) []uint64 {
	return a.words[b.off : b.off+b.cap : b.off+b.cap][:b.len]
}

// cut returns the offset of a block of size words: one that was released,
// or a new one. It reports false when the arena is full.
func (a *arena) cut(size int) (off int, ok bool) {
	if off, ok = a.released.pop(a.words, size); !ok {
		off = len(a.words)
		if off+size > cap(a.words) {
			return 0, false
		}
		a.words = a.words[:off+size]
	}
	a.live += size
	return off, true
}

// release frees b. The state in it is lost.
func (a *arena) release(b block) {
	a.live -= b.cap
	a.released.push(a.words, b.off, b.cap)
}

// freeLists are the blocks that were released, by size from 4 to 8 words:
// for each size the first block's offset plus one. The first word of a block
// is the next block's offset plus one; 0 ends a list. Larger blocks are not
// listed: their memory is free again when the arena is compacted.
type freeLists [5]uint32

const smallest = inline + 1 // the size of the blocks of the first list

// push adds the block of size words at off.
func (f *freeLists) push(words []uint64, off, size int) {
	if i := size - smallest; i < len(f) {
		words[off] = uint64(f[i])
		f[i] = uint32(off) + 1
	}
}

// pop takes a block of size words. It reports false when there is none.
func (f *freeLists) pop(words []uint64, size int) (off int, ok bool) {
	i := size - smallest
	if i >= len(f) || f[i] == 0 {
		return 0, false
	}
	off = int(f[i]) - 1
	f[i] = uint32(words[off])
	return off, true
}

// class returns the size of the block for a state of n words, or 0 when the
// state fits in its slot. Sizes are 4 to 8, then 10, 12, 14, 16, 20, 24 and so
// on, four to each power of two: less than a fifth of a block is unused.
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

// classOf returns a small number for the size of a block, which class has returned. A
// size is 4 to 7 times a power of two.
func classOf(size int) uint64 {
	shift := bits.Len(uint(size)) - 3
	return uint64(shift)<<2 | uint64(size>>shift)&3
}

// sizeOf returns the size with the given number, which classOf has returned.
func sizeOf(class uint64) int { return int(4|class&3) << (class >> 2) }

// grown returns the size of the block for a state of n words that has outgrown a
// block of was words; 0: it had none. A state that has outgrown one block will
// outgrow the next one, too, so that is larger: a whole number of cache lines of eight
// words up to 64 words, twice as many each time, and then a quarter more. With a million
// keys in sliding windows this saves half of the moves, and 5 % of what a take costs.
func grown(was, n int) int {
	switch {
	case was == 0:
	case n <= 64:
		n = 1 << bits.Len(uint(n-1))
	default:
		n += n / 4
	}
	return class(n)
}
