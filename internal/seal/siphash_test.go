package seal_test

import (
	"testing"

	"github.com/weirhq/weir/internal/seal"
)

// The first answers of the reference implementation: key 00 01 … 0f, and messages
// 00 01 02 … of 0 bytes, 1 byte, and so on.
func TestSipHash(t *testing.T) {
	t.Parallel()
	var k seal.Key
	for i := range k {
		k[i] = byte(i)
	}
	var message []byte
	for n, want := range []uint64{
		0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7,
		0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0,
		0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7, 0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee,
		0xa129ca6149be45e5,
	} {
		// Also in two parts, wherever the first one ends.
		for cut := range n + 1 {
			if got := seal.SIPHash(&k, string(message[:cut]), message[cut:]); got != want {
				t.Errorf("of %d and %d bytes: got %016x, want %016x", cut, n-cut, got, want)
			}
		}
		message = append(message, byte(n))
	}
}
