package table_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// A call allocates, and so copies, no more than two halves of a segment of 16 KiB and
// 64 KiB of blocks, and the directory, whatever the number of keys. Not parallel: it counts what the process allocates.
func TestCallsAllocateABoundedPart(t *testing.T) {
	const (
		keys       = 300_000 // a thirty-second of ten million
		entryBytes = 32      // of the directory
	)
	for _, c := range []struct {
		name  string
		words int    // of a state
		most  uint64 // bytes without the directory: twice as many as needed, which is what the race detector takes
	}{
		{"states in slots", 1, 50 << 10},
		{"states in blocks", 9, 144 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var grown table.Table
			var m runtime.MemStats
			rng := rand.New(rand.NewPCG(1, 2))
			state := make([]uint64, c.words)
			state[0] = 1 << 62
			worst := uint64(0)
			runtime.ReadMemStats(&m)
			allocated := m.TotalAlloc
			for range keys {
				h := table.Hash(rng.Uint64())
				bytes, entries := grown.Bytes(), grown.Entries()
				grown.Put(grown.Find(h), h, state, 1<<62, at(0))
				if grown.Bytes() == bytes {
					continue // nothing was allocated
				}
				runtime.ReadMemStats(&m)
				took := m.TotalAlloc - allocated
				allocated = m.TotalAlloc
				if now := grown.Entries(); now != entries {
					took -= uint64(now) * entryBytes
				}
				worst = max(worst, took)
			}
			t.Logf("got at most %d bytes in a call, and a directory of %d entries", worst, grown.Entries())
			if worst > c.most {
				t.Errorf("got %d bytes allocated by a call, want at most %d and the directory", worst, c.most)
			}
		})
	}
}
