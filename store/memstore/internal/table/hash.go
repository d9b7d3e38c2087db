package table

import "math/bits"

// Hash stands for a key. Each part of it has one use: the highest byte is the
// owner's, who chooses the table by it; the 24 bits below it choose the
// segment, and the low half chooses the slot where a search begins.
//
// A table does not keep the three highest bits. Keys of one table that differ
// in those only are the same key, so the owner should use them.
type Hash uint64

// maxDepth is the number of bits that choose the segment.
const maxDepth = 24

// prefix returns the first n of the bits that choose the segment.
func (h Hash) prefix(n uint8) int { return int(h << 8 >> (64 - n)) }

// slot returns the first of n slots to search.
func (h Hash) slot(n int) int {
	hi, _ := bits.Mul64(uint64(h)<<32, uint64(n))
	return int(hi)
}
