package memstore

import (
	"github.com/weirhq/weir/store"
)

// Tally is what the keys of a space hold, and how many of them are banned.
type Tally struct {
	Holds  int64 // holds that are alive, of all keys
	Banned int64 // keys that are banned
}

// Tally looks at all keys of a space. It takes about 50 ms for a million keys,
// and locks one shard at a time, for at most 512 keys. Calls meanwhile can be
// in the result or not.
func (s *Store) Tally(space *store.Space) (t Tally) {
	ks := s.keyspaces.existing(space)
	if ks == nil {
		return t
	}
	limit, now := ks.limit.Load(), s.clock.read().of(ks.onWall)
	if limit == nil {
		return t
	}
	look := func(state []uint64) {
		if !limit.Remembers(state) {
			return
		}
		r := limit.Read(state, now)
		t.Holds += int64(r.Holds)
		if r.BannedUntil > now {
			t.Banned++
		}
	}
	for i := range ks.shards {
		sh := ks.shards[i].Load()
		if sh == nil {
			continue
		}
		for entry, entries := 0, 1; entry < entries; {
			sh.stripe.mu.Lock()
			entry = sh.table.Each(entry, look)
			entries = sh.table.Entries()
			sh.stripe.mu.Unlock()
		}
	}
	return t
}
