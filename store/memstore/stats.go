package memstore

import "github.com/weirhq/weir/store"

// Stats are the numbers of one space.
type Stats struct {
	Space *store.Space
	Keys  int64 // kept now, with expired ones that are not reclaimed yet
	Bytes int64 // that the keys and their states take
	Full  int64 // ops refused for want of room, see [github.com/weirhq/weir/store.ErrFull]
}

// Stats returns the numbers of every space, in no order. It takes each shard's
// lock in turn.
func (s *Store) Stats() []Stats {
	ts := &s.tables
	ts.mu.Lock()
	all := make([]Stats, 0, len(ts.order))
	tables := make([]*table, len(ts.order))
	copy(tables, ts.order)
	ts.mu.Unlock()
	for _, t := range tables {
		all = append(all, Stats{&t.space, t.keys.Load(), t.bytes(), t.full.Load()})
	}
	return all
}

// Keys returns how many keys the space has.
func (s *Store) Keys(space *store.Space) int64 {
	if t := s.tables.existing(space); t != nil {
		return t.keys.Load()
	}
	return 0
}

// Full is how many ops were refused for want of room since the store was made.
func (s *Store) Full() int64 { return s.full.Load() }

func (t *table) bytes() (n int64) {
	for i := range t.shards {
		if sh := t.shards[i].Load(); sh != nil {
			sh.mu.Lock()
			n += sh.bytes
			sh.mu.Unlock()
		}
	}
	return n
}
