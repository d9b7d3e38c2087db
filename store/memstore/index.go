package memstore

import (
	"sync/atomic"

	"github.com/weirhq/weir/store"
)

// index finds keyspaces by their spaces. Reading takes no lock; writing needs
// keyspaces.mu. It is a hash table with linear probing whose entries are only
// ever set, or replaced by one for the same space. When it is full,
// a new array without the dead ones replaces it; readers of
// the old one find a keyspace that is dead, or none, and then look again under
// the lock.
type index struct {
	// Invariant: a power of two, at most half of which are set, so that a
	// search ends at an entry that is not.
	entries atomic.Pointer[[]atomic.Pointer[keyspace]]

	used int // guarded by keyspaces.mu; entries that are set
}

// find returns the keyspace of space, which may be dead, or nil.
func (x *index) find(space *store.Space) (ks *keyspace) {
	entries := *x.entries.Load()
	for i := space.Hash(); ; i++ {
		if ks = entries[i&uint64(len(entries)-1)].Load(); ks == nil || ks.space.Same(space) {
			return // without a value, so that it is inlined
		}
	}
}

// put makes ks the keyspace of its space. all are those that are alive.
func (x *index) put(ks *keyspace, all []*keyspace) {
	entries := *x.entries.Load()
	if 2*(x.used+1) <= len(entries) {
		x.enter(entries, ks)
		return
	}
	size := 8
	for size < 4*(len(all)+1) {
		size *= 2
	}
	entries = make([]atomic.Pointer[keyspace], size)
	x.used = 0
	for _, alive := range all {
		x.enter(entries, alive)
	}
	x.enter(entries, ks)
	x.entries.Store(&entries)
}

// enter sets the entry of ks.
func (x *index) enter(entries []atomic.Pointer[keyspace], ks *keyspace) {
	for i := ks.space.Hash(); ; i++ {
		e := &entries[i&uint64(len(entries)-1)]
		switch old := e.Load(); {
		case old == nil:
			x.used++
			e.Store(ks)
			return
		case old.space.Same(&ks.space):
			e.Store(ks)
			return
		}
	}
}

// reset drops all keyspaces.
func (x *index) reset() {
	entries := make([]atomic.Pointer[keyspace], 8)
	x.entries.Store(&entries)
	x.used = 0
}
