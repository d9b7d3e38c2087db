package memstore

import (
	"math/bits"
	"sync/atomic"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store/memstore/internal/keyed"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// A journal tracks which keys change, for a program that writes them to a disk: it asks [Store.Journal] for what has
// changed, and at times for all keys, and puts them into another store with the same secret.
//
// A call that changes a key marks it in its shard (see dirty).
type marks struct {
	key, member keyed.Key
	overflowed  atomic.Bool // some shard has overflowed since the last walk
}

// leastShards is the least number of shards of a store with a journal. The number
// of a shard gives back the bits of a hash that a table does not keep.
const leastShards = 8

// WithJournal makes the store track which keys change, for [Store.Journal]. Keys and
// members are then hashed with secret, so that their fingerprints mean the same in
// every store with that secret. The store has at least 8 shards for each space.
// Default: the store tracks nothing.
func WithJournal(secret journal.Secret) Option {
	return func(s *Store) {
		j := &marks{}
		j.key, j.member = keyed.KeyOf([16]byte(secret[:16])), keyed.KeyOf([16]byte(secret[16:]))
		s.keyspaces.journal = j
	}
}

// dirty returns what a new shard of ks tracks changes in.
func (j *marks) dirty(ks *keyspace) *dirty {
	if j == nil {
		return nil
	}
	return &dirty{keyspace: ks}
}

// Journal returns the journal of s, which [WithJournal] gave it.
func (s *Store) Journal() journal.Journal {
	if s.keyspaces.journal == nil {
		panic("memstore: journal of a store without one")
	}
	return journaled{s}
}

// journaled is a store as its journal.
type journaled struct{ *Store }

// AllSecrets implements [journal.Journal].
func (s journaled) AllSecrets() seal.Secrets { return *s.secrets.Load() }

// UseSecrets implements [journal.Journal].
func (s journaled) UseSecrets(all seal.Secrets) { s.secrets.Store(&all) }

// AdoptSecret implements [journal.Journal].
func (s journaled) AdoptSecret(secret seal.Secret, until window.Instant) {
	for {
		old := s.secrets.Load()
		if old.List[1] == secret && old.Until != 0 {
			return
		}
		if s.secrets.CompareAndSwap(old, &seal.Secrets{List: [2]seal.Secret{old.List[0], secret}, Until: until}) {
			return
		}
	}
}

// part returns ks for callers.
func (ks *keyspace) part() journal.Part {
	return journal.Part{Space: &ks.space, Limit: ks.limit.Load()}
}

// Overflowed implements [journal.Journal].
func (s journaled) Overflowed() bool { return s.keyspaces.journal.overflowed.Load() }

// walkReader is what [journal.Journal.Walk] returns.
//
// It takes a segment of each shard in turn, so that goroutines that share the keys among
// them by their shards, such as those that load them, have work at the same time.
type walkReader struct {
	store     *Store
	keyspaces []*keyspace // that are not read yet
	positions []int       // in the shards of the first of them; nil: not begun
	shard     int         // the next one
}

// Walk implements [journal.Journal].
func (s journaled) Walk() journal.Reader {
	w := &walkReader{store: s.Store, keyspaces: s.keyspaces.all()}
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

// Next implements [journal.Reader].
func (w *walkReader) Next(visit func(p journal.Part, key uint64, state []uint64)) (ok bool) {
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
				return true
			}
		}
	}
	return false
}

// read visits the keys of one segment of sh, the shard i.
func (w *walkReader) read(ks *keyspace, sh *shard, i int, visit func(p journal.Part, key uint64, state []uint64)) {
	m := w.store.clock.read()
	e := w.store.clock.expiry(m, ks)
	high := uint64(i) << (64 - bits.TrailingZeros(uint(len(ks.shards))))
	sh.stripe.mu.Lock()
	defer sh.stripe.mu.Unlock()
	p := ks.part() // under the lock: states are counted under this limit or an earlier one
	w.positions[i] = sh.table.Walk(w.positions[i], func(h table.Hash, state []uint64) {
		h |= table.Hash(high)
		if ks.records && sh.dirty.has(h) {
			return // a changeReader visits it after what its call has counted
		}
		if !e.Over(state) {
			visit(p, uint64(h), state)
			if sh.names != nil {
				if at := sh.names.Find(h); at.Known() {
					p.Names = true
					visit(p, uint64(h), at.State())
					p.Names = false
				}
			}
		}
	})
}
