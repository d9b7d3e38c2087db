package memstore

import (
	"sync/atomic"

	"github.com/weirhq/weir/store"
)

// index finds tables by their spaces. Reading takes no lock; writers hold
// tables.mu. It is a hash table with linear probing that is never more than
// half full, so that a search always ends at a free entry.
type index struct {
	entries atomic.Pointer[[]atomic.Pointer[table]] // a power of two of them
	used    int                                     // guarded by tables.mu; dead tables included
}

// of returns the table of space, which may be dead, or nil.
func (x *index) of(space *store.Space) *table {
	entries := *x.entries.Load()
	for i := space.Hash(); ; i++ {
		t := entries[i&uint64(len(entries)-1)].Load()
		if t == nil || t.space.Same(space) {
			return t
		}
	}
}

// put makes t the table of its space, and drops the dead ones when there is no
// room for one more; all are the tables that are alive.
func (x *index) put(t *table, all []*table) {
	entries := *x.entries.Load()
	if 2*(x.used+1) > len(entries) {
		size := 8
		for size < 4*(len(all)+1) {
			size *= 2
		}
		entries = make([]atomic.Pointer[table], size)
		x.used = 0
		for _, t := range all {
			x.enter(entries, t)
		}
		x.enter(entries, t)
		x.entries.Store(&entries)
		return
	}
	x.enter(entries, t)
}

func (x *index) enter(entries []atomic.Pointer[table], t *table) {
	for i := t.space.Hash(); ; i++ {
		e := &entries[i&uint64(len(entries)-1)]
		switch old := e.Load(); {
		case old == nil:
			x.used++
			e.Store(t)
			return
		case old.space.Same(&t.space):
			e.Store(t)
			return
		}
	}
}

// reset drops all tables.
func (x *index) reset() {
	entries := make([]atomic.Pointer[table], 8)
	x.entries.Store(&entries)
	x.used = 0
}
