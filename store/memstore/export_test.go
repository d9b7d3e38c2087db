package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Keyspace is a keyspace, for tests.
type Keyspace = keyspace

// KeyspaceOf returns the keyspace of space in s.
func KeyspaceOf(s *Store, space *store.Space) *Keyspace { return s.keyspaces.existing(space) }

// ShardsOf returns how many shards ks has.
func ShardsOf(ks *Keyspace) (n int) {
	for i := range ks.shards {
		if ks.shards[i].Load() != nil {
			n++
		}
	}
	return n
}

// WithMachine replaces the machine's clocks: the steady one, which never goes
// back, and the one on the wall.
func WithMachine(tell func() (steady, wall window.Instant)) Option {
	return func(s *Store) {
		s.clock.tell = func() moment {
			steady, wall := tell()
			return moment{steady, wall}
		}
	}
}
