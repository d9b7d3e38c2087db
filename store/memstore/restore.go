package memstore

import (
	"math"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// Times implements [journal.Journal].
func (s journaled) Times() journal.Times {
	m := s.clock.read()
	return journal.Times{
		Steady: m.steady, Wall: m.wall,
		SteadyFloor: window.Instant(s.clock.steadyFloor.Load()), WallFloor: window.Instant(s.clock.wallFloor.Load()),
	}
}

// Resume implements [journal.Journal].
func (s journaled) Resume(t journal.Times) {
	s.clock.base = s.clock.base.Add(t.Steady.Sub(s.clock.now(false).steady))
	s.clock.steadyFloor.Store(int64(t.SteadyFloor))
	s.clock.wallFloor.Store(int64(t.WallFloor))
	_ = s.clock.read() // which sets back a floor that is far ahead
}

// restorer is what [journal.Journal.Restore] returns.
type restorer struct {
	keyspace *keyspace
	store    *Store
	expiry   expiry
}

// Restore implements [journal.Journal].
func (s journaled) Restore(p journal.Part) journal.Writer {
	ks := s.keyspaces.findOrMake(p.Space, p.Limit)
	if ks == nil {
		return nil
	}
	ks.follow(p.Limit)
	e := s.clock.expiry(s.clock.read(), ks)
	e.Lives = (*lives)(p.Limit)
	return &restorer{ks, s.Store, e}
}

// Put implements [journal.Writer].
func (r *restorer) Put(key uint64, state []uint64) {
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

// Name implements [journal.Writer]. A later sweep drops the names of keys that are gone.
func (r *restorer) Name(key uint64, words []uint64) {
	if len(words) < 2 {
		return
	}
	h := table.Hash(key)
	sh := r.keyspace.shard(r.store.numberOf(h))
	sh.stripe.mu.Lock()
	defer sh.stripe.mu.Unlock()
	if sh.names == nil {
		sh.names = &names{keys: &sh.table}
	}
	sh.names.Put(sh.names.Find(h), h, words, math.MinInt64, table.Expiry{Lives: lasting{}, Horizon: math.MinInt64})
	sh.account(&r.store.memory)
}

// lasting are names that are being loaded: keys that have expired can be counted again by
// what is loaded later.
type lasting struct{}

// Expires implements [table.Lives].
func (lasting) Expires([]uint64) int64 { return math.MaxInt64 }
