package table

// Table maps hashes to states of at least one word. The zero value is an empty
// table. It is not safe for concurrent use.
type Table struct {
	dir   []entry // none in an empty table; else 1<<depth
	depth uint8
	bytes int64
	keys  int
	cycle cycle // over the directory; a segment is passed as a whole
}

// entry is a segment with its slots: a search that needs only those saves a
// cache miss, with a million keys a sixth of what a take costs.
type entry struct {
	slots []slot
	*segment
}

// Expiry is which keys have expired: those that expire at Horizon or before.
type Expiry struct {
	Lives   Lives
	Horizon int64
}

// Lives is how long keys live.
type Lives interface {
	// Expires returns the instant from which a key with the given state need
	// not be kept.
	Expires(state []uint64) int64
}

// of returns the instant at which a key with the given state expires, and
// reports whether that has passed.
func (e Expiry) of(state []uint64) (at int64, over bool) {
	at = e.Lives.Expires(state)
	return at, at <= e.Horizon
}

// Over reports whether a key with the given state has expired.
func (e Expiry) Over(state []uint64) bool {
	_, over := e.of(state)
	return over
}

// Keys returns the number of keys, with those that have expired and were not
// reclaimed yet.
func (t *Table) Keys() int { return t.keys }

// Bytes returns how much memory the keys and their states take.
func (t *Table) Bytes() int64 { return t.bytes }

// Earliest returns a bound for the instant at which the first key expires: none
// expires before it. It is exact unless that key has been changed or removed since
// a sweep passed it. Earliest returns false for an empty table, and where the bound
// is not known.
func (t *Table) Earliest() (at int64, ok bool) {
	earliest := int64(forever)
	for i := 0; i < len(t.dir); i += 1 << (t.depth - t.dir[i].depth) {
		earliest = min(earliest, t.dir[i].cycle.earliest)
	}
	return earliest, t.keys > 0 && earliest != forever && earliest > 0
}

// Find looks h up.
func (t *Table) Find(h Hash) Ref {
	if len(t.dir) == 0 {
		return Ref{}
	}
	e := &t.dir[h.prefix(t.depth)]
	if len(e.slots) == 0 {
		return Ref{segment: e.segment}
	}
	i, known := find(e.slots, h)
	return Ref{e.segment, &e.slots[i], known}
}

// Put makes state, which is not empty and not part of the table, the state of
// h, which Find found at r. It does not read the state that h had. The key expires at
// the given instant. Put may drop expired keys to free slots, and returns how many.
func (t *Table) Put(r Ref, h Hash, state []uint64, expires int64, e Expiry) (reclaimed int) {
	if r.segment == nil {
		t.begin()
		r = t.Find(h)
	}
	for !r.segment.put(r.slot, h, state) {
		if r.known { // freeSlots reads all states, and the one that this one replaces may be half changed
			i, _ := find(r.segment.slots, h)
			r.segment.remove(i)
			t.keys--
		}
		reclaimed += t.freeSlots(h, grown(1, len(state)), e)
		r = t.Find(h)
	}
	if !r.known {
		t.keys++
	}
	t.Touch(r, expires)
	return reclaimed
}

// Touch lowers the bounds for when keys of r's segment and of the table expire, after a state at r
// was put, or was changed in place so that it may expire earlier.
func (t *Table) Touch(r Ref, expires int64) {
	r.segment.cycle.touch(expires)
	t.cycle.touch(expires)
}

// Remove drops h, which Find found at r.
func (t *Table) Remove(r Ref, h Hash) {
	i, _ := find(r.segment.slots, h)
	r.segment.remove(i)
	r.segment.cycle.invalidate()
	t.cycle.force() // a sweep gives memory back
	t.keys--
}

// Reclaim drops the expired keys among those that h shares a segment with, and
// returns how many. r is what Find returned for h.
func (t *Table) Reclaim(r Ref, h Hash, e Expiry) int {
	g := r.segment
	if g == nil || e.Horizon < g.cycle.earliest {
		return 0
	}
	before := t.keys
	n, earliest := t.purge(g, e)
	t.refill(g, h, n, earliest)
	return before - t.keys
}

// Ref is the slot of a key in a table, or the one where it would go. The
// zero value is a slot in an empty table. See the package comment for how long
// a Ref is good.
type Ref struct {
	segment *segment // nil in an empty table
	slot    *slot    // nil where the segment has no slots
	known   bool
}

// Known reports whether the table has the key.
func (r Ref) Known() bool { return r.known }

// State returns the key's state, nil when the table does not have the key. It
// may be changed in place, up to its capacity; see [Ref.Resize].
func (r Ref) State() []uint64 {
	if !r.known {
		return nil
	}
	return r.segment.state(r.slot)
}

// Resize sets the number of words of the key's state, at least one and at most
// the capacity of [Ref.State], after it was changed in place.
func (r Ref) Resize(n int) {
	r.slot.resize(n)
}
