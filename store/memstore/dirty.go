package memstore

import (
	"slices"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// dirty tracks which keys of a shard have changed since the journal last asked. It
// is guarded by the lock of the shard. When nobody takes the keys for so long that their sets
// are as large as the table, they are dropped, and the shard has overflowed: the
// journal must ask for all keys ([journal.Journal.Walk]).
type dirty struct {
	changed
	keyspace *keyspace
	taken    int // full sets that a reader has taken, and has not read yet
	overflow bool
}

// changed are keys, each of them once, and now and then twice.
//
// A set is a hash table with linear probing without states: the
// journal finds the key in the shard's table. A set has at most mostSet keys, so that
// growing it takes some microseconds. Then the next set begins.
type changed struct {
	set  []table.Hash   // of a power of two, at most half full; 0 is free
	n    int            // keys in set
	full [][]table.Hash // sets that are full
	zero bool           // the key 0 has changed
}

// Sets of 32 slots grow four times, up to five times, until they have mostSet keys.
const (
	leastSet = 32
	mostSet  = 16384 // keys: half of 32,768 slots
	setSizes = 6
)

// mark records that the state of h has changed, or that h was dropped before it
// expired. It does nothing in a store without a journal.
func (sh *shard) mark(h table.Hash) {
	if d := sh.dirty; d != nil {
		d.mark(h, sh.table.Keys())
	}
}

// mark records h, which is in a table of keys keys.
func (d *dirty) mark(h table.Hash, keys int) {
	if d.overflow {
		return
	}
	if !d.keyspace.marked.Load() {
		d.keyspace.marked.Store(true)
	}
	if h == 0 {
		d.zero = true
		return
	}
	if 2*d.n >= len(d.set) {
		d.grow(keys)
	}
	if d.overflow {
		return
	}
	if at := slotOf(d.set, h); d.set[at] == 0 {
		d.set[at] = h
		d.n++
	}
}

// slotOf returns where h is in set, or would be.
func slotOf(set []table.Hash, h table.Hash) int {
	mask := len(set) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		if set[i] == h || set[i] == 0 {
			return i
		}
	}
}

// grow makes the set larger, so that a key fits.
func (d *dirty) grow(keys int) {
	if d.n >= mostSet {
		if (len(d.full)+1+d.taken)*mostSet > max(2*mostSet, keys/2) {
			d.changed = changed{}
			d.overflow = true
			d.keyspace.journal.overflowed.Store(true)
			return
		}
		d.full = append(d.full, d.set)
		d.set, d.n = make([]table.Hash, leastSet), 0
		return
	}
	larger := make([]table.Hash, max(leastSet, 4*len(d.set)))
	for _, h := range d.set {
		if h != 0 {
			larger[slotOf(larger, h)] = h
		}
	}
	d.set = larger
}

// take takes the keys that have changed. d goes on with a set of spare, if it is likely
// to need one that large.
func (d *dirty) take(spare *spareSets) changed {
	keys := d.changed
	d.changed, d.taken = changed{}, len(keys.full)
	if len(keys.set) <= 1024 || 8*keys.n >= len(keys.set) {
		d.set = spare.get(len(keys.set))
	}
	return keys
}

// has reports whether h is among the keys.
func (k *changed) has(h table.Hash) bool {
	if h == 0 {
		return k.zero
	}
	if len(k.set) > 0 && k.set[slotOf(k.set, h)] == h {
		return true
	}
	return slices.ContainsFunc(k.full, func(set []table.Hash) bool { return set[slotOf(set, h)] == h })
}

// any reports whether there are keys.
func (k *changed) any() bool { return k.n > 0 || k.zero || len(k.full) > 0 }

// spareSets are empty sets, by their sizes.
type spareSets [setSizes][][]table.Hash

// get returns an empty set of size slots, or nil.
func (s *spareSets) get(size int) (set []table.Hash) {
	i := sizeOf(size)
	if n := len(s[i]); n > 0 {
		set, s[i][n-1], s[i] = s[i][n-1], nil, s[i][:n-1]
	}
	return set
}

// put adds an empty set, if there are fewer than most of its size.
func (s *spareSets) put(set []table.Hash, most int) {
	if i := sizeOf(len(set)); len(set) > 0 && len(s[i]) < most {
		s[i] = append(s[i], set)
	}
}

// sizeOf returns how many times a set of size slots has grown.
func sizeOf(size int) (times int) {
	for ; size > leastSet; size /= 4 {
		times++
	}
	return times
}
