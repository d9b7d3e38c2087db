package seal

import (
	"encoding/binary"
	"math/bits"
)

// sip is the state of SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", 2012): a hash of 64 bits that is not predictable without the
// key. The standard library has it only with keys that nobody can choose.
type sip struct {
	v0, v1, v2, v3 uint64

	tail uint64 // the last size%8 bytes, the first of them lowest
	size int    // of all that was added
}

func newSIP(k *Key) sip {
	k0, k1 := binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:])
	return sip{
		v0: k0 ^ 0x736f6d6570736575, v1: k1 ^ 0x646f72616e646f6d,
		v2: k0 ^ 0x6c7967656e657261, v3: k1 ^ 0x7465646279746573,
	}
}

// round returns the state after one round. It is small enough for the compiler to put
// it into its callers.
func round(v0, v1, v2, v3 uint64) (_, _, _, _ uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}

// word compresses eight bytes.
func (s *sip) word(m uint64) {
	v0, v1, v2, v3 := round(s.v0, s.v1, s.v2, s.v3^m)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	s.v0, s.v1, s.v2, s.v3 = v0^m, v1, v2, v3
}

func (s *sip) bytes(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s.eight(binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		s.one(c)
	}
}

func (s *sip) text(t string) {
	var b [8]byte
	for ; len(t) >= 8; t = t[8:] {
		copy(b[:], t)
		s.eight(binary.LittleEndian.Uint64(b[:]))
	}
	for i := range len(t) {
		s.one(t[i])
	}
}

// eight adds eight bytes, the first of them lowest, behind those in the tail.
func (s *sip) eight(m uint64) {
	shift := 8 * (s.size % 8)
	s.word(s.tail | m<<shift)
	s.tail = m >> (64 - shift)
	s.size += 8
}

func (s *sip) one(c byte) {
	s.tail |= uint64(c) << (8 * (s.size % 8))
	if s.size++; s.size%8 == 0 {
		s.word(s.tail)
		s.tail = 0
	}
}

// sum returns the hash of all that was added.
func (s *sip) sum() uint64 {
	end := *s
	end.word(s.tail | uint64(s.size)<<56)
	v0, v1, v2, v3 := end.v0, end.v1, end.v2^0xff, end.v3
	for range 4 {
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}
