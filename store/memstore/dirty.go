package memstore

import "github.com/weirhq/weir/store/memstore/internal/table"

// dirty notes which keys of a shard have changed since the journal last asked. It
// is guarded by the shard's mu. A key is noted once for each time that the set was
// taken, and now and then twice.
//
// The set is a hash table with linear probing that has no room for a state: the
// journal finds the key in the shard's table. A set has at most mostSet keys, so that
// growing it takes some microseconds. Then the next set begins. When nobody takes
// the sets for so long that they are as large as the table, they are dropped, and
// the shard has overflowed: the journal must ask for all keys ([Store.Walk]).
type dirty struct {
	keyspace *keyspace

	set  []table.Hash   // of a power of two, at most half full; 0 is free
	n    int            // keys in set
	full [][]table.Hash // sets that are full
	zero bool           // the key 0 has changed

	overflow bool
}

const (
	leastSet = 32
	mostSet  = 16384 // keys: half of 32,768 places
)

// mark notes that the state of h has changed, or that h was dropped before it
// expired. It does nothing in a store without a journal.
func (sh *shard) mark(h table.Hash) {
	if d := sh.dirty; d != nil {
		d.mark(h, sh.table.Keys())
	}
}

// mark notes h, which is in a table of keys keys.
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

// grow makes room for a key.
func (d *dirty) grow(keys int) {
	if d.n >= mostSet {
		if (len(d.full)+1)*mostSet > max(2*mostSet, keys/2) {
			d.clear()
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

// clear forgets all keys.
func (d *dirty) clear() { d.set, d.n, d.full, d.zero = nil, 0, nil, false }

// take appends the keys that have changed to keys, and forgets them.
func (d *dirty) take(keys []table.Hash) []table.Hash {
	if d.zero {
		keys = append(keys, 0)
	}
	for _, set := range d.full {
		keys = appendKeys(keys, set)
	}
	keys = appendKeys(keys, d.set)
	set, n := d.set, d.n
	d.clear()
	if len(set) <= 1024 || 8*n >= len(set) { // most often it is needed again
		clear(set)
		d.set = set
	}
	return keys
}

// appendKeys appends the keys in set to keys.
func appendKeys(keys, set []table.Hash) []table.Hash {
	for _, h := range set {
		if h != 0 {
			keys = append(keys, h)
		}
	}
	return keys
}

// any reports whether a key has changed.
func (d *dirty) any() bool { return d.n > 0 || d.zero || len(d.full) > 0 }
