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

// Heat makes every key that is taken hot at once, in the shards that ks has.
func Heat(ks *Keyspace) {
	for i := range ks.shards {
		if sh := ks.shards[i].Load(); sh != nil && sh.hot.Load() == nil {
			sh.hot.Store(&hotKeys{enough: 1})
			ks.heated.Store(true)
		}
	}
}

// HotOf returns how many keys of ks are hot: with a state, and with an answer.
func HotOf(ks *Keyspace) (states, answers int) {
	for i := range ks.shards {
		sh := ks.shards[i].Load()
		if sh == nil || sh.hot.Load() == nil {
			continue
		}
		keys := sh.hot.Load()
		for j := range keys.places {
			e := keys.places[j].hot.Load()
			switch {
			case e == nil:
			case e.word.Load() != gone:
				states++
			case e.turn.Load()&1 == 0:
				answers++
			}
		}
	}
	return states, answers
}
