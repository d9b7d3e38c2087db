package memstore_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A place in flight takes at most 32 bytes, besides what the key takes that has
// the first one.
func TestBytesPerPlace(t *testing.T) {
	t.Parallel()
	const keys = 5_000
	limit := window.MustCompile(window.Limit{Quota: 1000, Window: window.Held(time.Minute)})
	measure := func(places int) int64 {
		s := memstore.New(memstore.WithClock(func() window.Instant { return 1e15 }))
		op := hit("s", limit, "")
		op.Hold = new(store.Hold)
		var made uint64
		for i := range keys {
			op.Key = binary.AppendUvarint(op.Key[:0], uint64(i))
			for range places {
				made++
				binary.BigEndian.PutUint64(op.Hold.ID[:], made)
				ops := []store.Op{op}
				if err := store.Do(t.Context(), s, store.Take, ops); err != nil || !ops[0].Result.Held {
					t.Fatal(ops[0].Result, err)
				}
			}
		}
		return bytes(s) / keys
	}
	key := measure(1)
	if key > 50 {
		t.Errorf("got %d bytes for a key with one place, want at most 50", key)
	}
	for _, places := range []int{5, 10, 32, 100} {
		got := (measure(places) - key) / int64(places-1)
		t.Logf("%d places: %d bytes for each but the first", places, got)
		if got > 32 {
			t.Errorf("%d places: got %d bytes for each but the first, want at most 32", places, got)
		}
	}
}
