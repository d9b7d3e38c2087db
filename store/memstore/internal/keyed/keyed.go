// Package keyed is a keyed hash that gives the same value in every process: SipHash
// with one round for each word and three at the end (Aumasson and Bernstein, 2012).
// Without the key its values are not predictable, so callers cannot search for two
// inputs with one hash.
package keyed

import (
	"encoding/binary"
	"math/bits"
)

// Key is the key of a hash. A random Key is a secret.
type Key struct{ a, b uint64 }

// KeyOf returns the key with the given bytes.
func KeyOf(b [16]byte) Key {
	return Key{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// Sum returns the hash of data under k.
func Sum(k Key, data []byte) uint64 {
	v0, v1 := k.a^0x736f6d6570736575, k.b^0x646f72616e646f6d
	v2, v3 := k.a^0x6c7967656e657261, k.b^0x7465646279746573
	last := uint64(len(data)) << 56
	for ; len(data) >= 8; data = data[8:] {
		m := binary.LittleEndian.Uint64(data)
		v3 ^= m
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, b := range data {
		last |= uint64(b) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// round returns the four words after one round of SipHash.
func round(v0, v1, v2, v3 uint64) (w0, w1, w2, w3 uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
