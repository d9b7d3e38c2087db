package pgstore_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// What was encoded is decoded, and no other bytes make it fail.
func FuzzState(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s window.State
		for rest := b; len(rest) >= 8; rest = rest[8:] {
			s = append(s, binary.LittleEndian.Uint64(rest))
		}
		if got, ok := pgstore.DecodeState(nil, pgstore.EncodeState(nil, s)); !ok || !slices.Equal(got, s) {
			t.Errorf("got %v, %v, want %v", got, ok, s)
		}
		_, _ = pgstore.DecodeState(nil, b)
	})
}
