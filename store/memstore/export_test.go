package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ShardsAt is how many shards a store has left at the space's home.
func ShardsAt(space *store.Space) (n int) {
	t, _ := space.Home().(*table)
	for i := range t.shards {
		if t.shards[i].Load() != nil {
			n++
		}
	}
	return n
}

// WithMachine is the machine's clock as a test sets it: a steady one that
// cannot be set, and the one on the wall.
func WithMachine(tell func() (steady, wall window.Instant)) Option {
	return func(s *Store) {
		s.clock.tell = func() moment {
			steady, wall := tell()
			return moment{steady, wall}
		}
	}
}
