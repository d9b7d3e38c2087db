package memstore

import (
	"math"

	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// Times are the store's clocks at one instant, so that another process can go on
// where this one ended. See the package comment about time.
type Times struct {
	Steady, Wall           window.Instant // what the two clocks show
	SteadyFloor, WallFloor window.Instant // no call is dated before these
}

// Times reads the clocks. All hits that were counted before are dated no later.
func (s *Store) Times() Times {
	m := s.clock.read()
	return Times{
		m.steady, m.wall,
		window.Instant(s.clock.steadyFloor.Load()), window.Instant(s.clock.wallFloor.Load()),
	}
}

// Resume sets the steady clock to t.Steady and raises the floors to those of t. It
// is called before the first call of the store. t.Wall is ignored. A clock that the
// caller gave stays as it is.
func (s *Store) Resume(t Times) {
	s.clock.base = s.clock.base.Add(t.Steady.Sub(s.clock.now(false).steady))
	s.clock.steadyFloor.Store(int64(t.SteadyFloor))
	s.clock.wallFloor.Store(int64(t.WallFloor))
}

// Restore puts keys that a journal has visited into a space. Make one with
// [Store.Restore]. It is safe for concurrent use.
type Restore struct {
	keyspace *keyspace
	store    *Store
	expiry   expiry
	limit    *window.Compiled
}

// Restore returns what puts keys into the space of p. It makes the space if need be.
// It returns nil if the store is closed. Restored keys are not marked as changed.
func (s *Store) Restore(p Part) *Restore {
	ks := s.keyspaces.of(p.Space, p.Limit)
	if ks == nil {
		return nil
	}
	ks.follow(p.Limit)
	e := s.clock.expiry(s.clock.read(), ks)
	e.Lives = (*lives)(p.Limit)
	return &Restore{ks, s, e, p.Limit}
}

// Put makes state the state of key, whatever it was. An empty state, and one that
// has expired, drop the key. Put keeps to no bound on keys or memory: what was
// counted is not forgotten.
func (r *Restore) Put(key uint64, state []uint64) {
	h := table.Hash(key)
	sh := r.keyspace.shard(r.store.numberOf(h))
	sh.stripe.mu.Lock()
	defer sh.stripe.mu.Unlock()
	t := &sh.table
	at, before := t.Find(h), t.Keys()
	expires := int64(math.MinInt64)
	if len(state) > 0 {
		expires = r.expiry.Lives.Expires(state)
	}
	switch {
	case expires > r.expiry.Horizon:
		t.Put(at, h, state, expires, r.expiry.Expiry)
	case at.Known():
		t.Remove(at, h)
	}
	if len(state) > 0 && expires <= r.expiry.Horizon {
		r.expiry.raise()
	}
	r.keyspace.keys.Add(int64(t.Keys() - before))
	sh.account(&r.store.memory)
}
