package memstore

import "github.com/weirhq/weir/window"

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
