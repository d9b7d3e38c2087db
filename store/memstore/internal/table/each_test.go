package table_test

import (
	"testing"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// endless keeps all keys.
type endless struct{}

func (endless) Expires([]uint64) int64 { return 1 << 62 }

// Each visits every key once, in a table of any size.
func TestEach(t *testing.T) {
	t.Parallel()
	for _, keys := range []uint64{0, 1, 7, 500, 20_000} {
		var all table.Table
		e := table.Expiry{Lives: endless{}}
		for key := range keys {
			h := table.Hash(key * 0x9e3779b97f4a7c15)
			all.Put(all.Find(h), h, []uint64{key, key, key, key, key}[:1+key%5], 1<<62, e)
		}
		seen := map[uint64]int{}
		segments := 0
		for entry := 0; entry < max(all.Entries(), 1); segments++ {
			entry = all.Each(entry, func(state []uint64) {
				if len(state) != int(1+state[0]%5) {
					t.Errorf("key %d: got a state of %d words", state[0], len(state))
				}
				seen[state[0]]++
			})
		}
		if len(seen) != int(keys) || keys == 20_000 && segments < 10 {
			t.Errorf("%d keys: got %d in %d segments", keys, len(seen), segments)
		}
		for key, n := range seen {
			if n != 1 {
				t.Errorf("key %d: visited %d times", key, n)
			}
		}
	}
}
