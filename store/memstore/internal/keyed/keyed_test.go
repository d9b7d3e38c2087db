package keyed_test

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/weirhq/weir/store/memstore/internal/keyed"
)

// sip is SipHash as its paper describes it, with any number of rounds.
func sip(c, d int, key [16]byte, data []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[2] += v[3]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[3] = bits.RotateLeft64(v[3], 16)
			v[1] ^= v[0]
			v[3] ^= v[2]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[1]
			v[0] += v[3]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[3] = bits.RotateLeft64(v[3], 21)
			v[1] ^= v[2]
			v[3] ^= v[0]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte(nil), data...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(data)))
	for ; len(padded) > 0; padded = padded[8:] {
		m := binary.LittleEndian.Uint64(padded)
		v[3] ^= m
		rounds(c)
		v[0] ^= m
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// The reference model gives the value of the example in the paper's appendix A, which
// has two and four rounds, and Sum gives the values of the model with one and three.
func TestSum(t *testing.T) {
	t.Parallel()
	var key [16]byte
	var data [64]byte
	for i := range data {
		data[i] = byte(i)
		key[i%16] = byte(i % 16)
	}
	if got, want := sip(2, 4, key, data[:15]), uint64(0xa129ca6149be45e5); got != want {
		t.Fatalf("the reference model's value for the paper's example: got %x, want %x", got, want)
	}
	for n := range data {
		if got, want := keyed.Sum(keyed.KeyOf(key), data[:n]), sip(1, 3, key, data[:n]); got != want {
			t.Errorf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte("post/42"))
	f.Fuzz(func(t *testing.T, k, data []byte) {
		var key [16]byte
		copy(key[:], k)
		if got, want := keyed.Sum(keyed.KeyOf(key), data), sip(1, 3, key, data); got != want {
			t.Errorf("got %x, want %x", got, want)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	data := []byte("user\x00\x00\x00\x0242xyzw")
	key := keyed.KeyOf([16]byte{1})
	for b.Loop() {
		keyed.Sum(key, data)
	}
}
