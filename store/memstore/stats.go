package memstore

import "github.com/weirhq/weir/store"

// Stats holds the numbers of one space.
type Stats struct {
	Space *store.Space
	Keys  int64 // keys in memory, including expired ones that are not reclaimed yet
	Bytes int64 // memory that the keys and their states take
	Full  int64 // ops refused with [store.ErrFull] since the space was last dropped
}

// Stats returns the numbers of every space in memory, in no particular order. It
// locks one shard at a time.
func (s *Store) Stats() []Stats {
	keyspaces := s.keyspaces.all()
	all := make([]Stats, len(keyspaces))
	for i, ks := range keyspaces {
		all[i] = Stats{&ks.space, ks.keys.Load(), ks.bytes(), ks.full.Load()}
	}
	return all
}

// Keys returns the number of keys of the space in memory, including expired ones
// that are not reclaimed yet.
func (s *Store) Keys(space *store.Space) int64 {
	if ks := s.keyspaces.existing(space); ks != nil {
		return ks.keys.Load()
	}
	return 0
}

// Bytes returns the memory that the keys of all spaces and their states take.
func (s *Store) Bytes() int64 { return s.memory.now.Load() }

// MaxBytes returns the bound of [WithMaxBytes], or 0.
func (s *Store) MaxBytes() int64 { return s.memory.most.Load() }

// Full returns the number of ops in all spaces that were refused with
// [store.ErrFull] since the store was made.
func (s *Store) Full() int64 { return s.full.Load() }
