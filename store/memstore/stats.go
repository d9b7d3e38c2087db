package memstore

import "github.com/weirhq/weir/store"

// Stats holds the numbers of one space.
type Stats struct {
	Space *store.Space
	Keys  int64 // keys in memory, including expired ones that are not reclaimed yet
	Bytes int64 // memory that the keys and their states take
}

// Stats returns the numbers of those of the given spaces that have been used, or of every
// space in memory, in no particular order, if none are given. It locks one shard at a time.
func (s *Store) Stats(spaces ...*store.Space) []Stats {
	var keyspaces []*keyspace
	if len(spaces) == 0 {
		keyspaces = s.keyspaces.all()
	}
	for _, space := range spaces {
		if ks := s.keyspaces.existing(space); ks != nil {
			keyspaces = append(keyspaces, ks)
		}
	}
	all := make([]Stats, len(keyspaces))
	for i, ks := range keyspaces {
		all[i] = Stats{&ks.space, ks.keys.Load(), ks.bytes()}
	}
	return all
}

// Totals returns the memory that the keys of all spaces and their states take, the bound
// of [WithMaxBytes] or 0, and the number of ops in all spaces that were refused with
// [store.ErrFull] since the store was made.
func (s *Store) Totals() (bytes, maxBytes, full int64) {
	return s.memory.taken.Load(), s.memory.most.Load(), s.full.Load()
}
