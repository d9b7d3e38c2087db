package memstore

import (
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Table is a table, for tests.
type Table = table

// TableOf returns the table of space in s.
func TableOf(s *Store, space *store.Space) *Table { return s.tables.existing(space) }

// ShardsOf returns how many shards t has.
func ShardsOf(t *Table) (n int) {
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
