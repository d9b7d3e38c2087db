package memstore

import (
	"hash/maphash"
	"math/bits"
)

// fingerprint stands for a key: a hash of it under a random seed. Each part of
// it has one use: the first bits of the highest byte choose the shard, the 24
// bits below it the segment, and the low half the slot where the search begins.
type fingerprint uint64

// shard is the number of one of n shards, a power of two up to 256.
func (f fingerprint) shard(n int) int { return int(uint64(f>>56) * uint64(n) >> 8) }

// prefix is the first n of the bits that choose the segment.
func (f fingerprint) prefix(n uint8) int { return int(f << 8 >> (64 - n)) }

// slot is the first of n slots to search.
func (f fingerprint) slot(n int) int {
	hi, _ := bits.Mul64(uint64(f)<<32, uint64(n))
	return int(hi)
}

// maxDepth is the number of bits that choose the segment.
const maxDepth = 24

func (s *Store) fingerprint(key []byte) fingerprint {
	return fingerprint(maphash.Bytes(s.seeds.key, key))
}
