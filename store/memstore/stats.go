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
	keyspaces := s.keyspaces.all()
	all := make([]Stats, len(keyspaces))
	for i, ks := range keyspaces {
		all[i] = Stats{&ks.space, ks.keys.Load(), ks.bytes(), ks.full.Load()}
	}
	return all
}

// Keys returns how many keys the space has.
func (s *Store) Keys(space *store.Space) int64 {
	if ks := s.keyspaces.existing(space); ks != nil {
		return ks.keys.Load()
	}
	return 0
}

// Full returns how many ops were refused for want of room since the store was
// made.
func (s *Store) Full() int64 { return s.full.Load() }
