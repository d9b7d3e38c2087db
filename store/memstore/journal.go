package memstore

import (
	"math/bits"
	"sync/atomic"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/keyed"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// A journal notes which keys change, for a program that writes them to a disk
// behind the store: it asks for the [Store.Changes], and at times for all keys, by
// [Store.Walk]. [Store.Restore] puts them into another store with the same secret.
//
// A call that changes a key marks it in its shard (see dirty).
type journal struct {
	key, member keyed.Key
	overflowed  atomic.Bool // some shard has overflowed since the last Walk
}

// leastShards is the least number of shards of a store with a journal. The number
// of a shard gives back the bits of a hash that a table does not keep.
const leastShards = 8

// WithJournal makes the store note which keys change, for [Store.Changes]. Keys and
// members are then hashed with secret, so that their fingerprints mean the same in
// every store with that secret. The store has at least 8 shards for each space.
// Default: the store notes nothing.
func WithJournal(secret Secret) Option {
	return func(s *Store) {
		j := &journal{}
		j.key, j.member = secret.keys()
		s.keyspaces.journal = j
	}
}

// dirty returns what a new shard of ks notes changes in.
func (j *journal) dirty(ks *keyspace) *dirty {
	if j == nil {
		return nil
	}
	return &dirty{keyspace: ks}
}

// Part is the space that keys belong to, and a limit of theirs.
type Part struct {
	Space *store.Space
	Limit *window.Compiled
}

// part returns ks for callers.
func (ks *keyspace) part() Part { return Part{&ks.space, ks.limit.Load()} }

// Overflowed reports whether so many keys have changed since [Changes.Next] last
// visited them that the store does not know which. A [Store.Walk] that begins
// later visits all of them.
func (s *Store) Overflowed() bool { return s.keyspaces.journal.overflowed.Load() }

// Walk reads all keys of a store, segment by segment. Make one with [Store.Walk].
// It is not safe for concurrent use.
//
// It takes a segment of each shard in turn, so that goroutines that share the keys among
// them by their shards, such as those that load them, have work at the same time.
type Walk struct {
	store     *Store
	keyspaces []*keyspace // that are not read yet
	positions []int       // in the shards of the first of them; nil: not begun
	shard     int         // the next one
}

// Walk returns a walk through all keys that s, which must have a journal, has now,
// and may return newer ones. It ends what [Store.Overflowed] reports.
func (s *Store) Walk() *Walk {
	w := &Walk{store: s, keyspaces: s.keyspaces.all()}
	s.keyspaces.journal.overflowed.Store(false)
	for _, ks := range w.keyspaces {
		for i := range ks.shards {
			if sh := ks.shards[i].Load(); sh != nil {
				sh.stripe.mu.Lock()
				if sh.dirty.overflow {
					sh.dirty.overflow = false
				}
				sh.stripe.mu.Unlock()
			}
		}
	}
	return w
}

// Next calls visit for some keys of one space, and returns that space. Keys that
// have expired are left out. visit is called as by [Changes.Next]. Next reports
// false when all keys were visited. Keys that changed meanwhile are visited with
// their state before or after the change.
func (w *Walk) Next(visit func(key uint64, state []uint64)) (p Part, ok bool) {
	for ; len(w.keyspaces) > 0; w.keyspaces, w.positions = w.keyspaces[1:], nil {
		ks := w.keyspaces[0]
		if w.positions == nil {
			w.positions, w.shard = make([]int, len(ks.shards)), 0
		}
		for range ks.shards {
			i := w.shard
			w.shard = (i + 1) % len(ks.shards)
			if sh := ks.shards[i].Load(); sh != nil && w.positions[i] < table.End {
				w.read(ks, sh, i, visit)
				return ks.part(), true
			}
		}
	}
	return Part{}, false
}

// read visits the keys of one segment of sh, the shard i.
func (w *Walk) read(ks *keyspace, sh *shard, i int, visit func(key uint64, state []uint64)) {
	m := w.store.clock.read()
	e := w.store.clock.expiry(m, ks)
	high := uint64(i) << (64 - bits.TrailingZeros(uint(len(ks.shards))))
	sh.stripe.mu.Lock()
	defer sh.stripe.mu.Unlock()
	w.positions[i] = sh.table.Walk(w.positions[i], func(h table.Hash, state []uint64) {
		h |= table.Hash(high)
		if !e.Over(state) {
			visit(uint64(h), state)
		}
	})
}
