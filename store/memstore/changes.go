package memstore

import "github.com/weirhq/weir/store/memstore/internal/table"

const (
	// atOnceShards is how many shards [Changes] reads in turn. A mutex prefers the
	// goroutine that runs: a reader that locks a shard again right after it has
	// unlocked it keeps the calls that wait for it out for up to a millisecond.
	atOnceShards = 8

	// atOnceKeys is how many keys are read under one lock, in some microseconds.
	atOnceKeys = 32
)

// Changes reads, in one round after another, the keys that have changed. Make one
// with [Store.Changes]. It is not safe for concurrent use, and a store has only one.
type Changes struct {
	store *Store

	keyspaces []*keyspace // of this round, that are not read yet
	shard     int         // the next one of the first of them
	taken     []taken     // shards of the first of them with keys that are not visited yet
	turn      int         // the one of taken whose turn it is

	spare spareSets // for shards whose keys are taken
}

// taken are the keys of a shard that had changed when a reader came by.
type taken struct {
	changed
	shard *shard
	read  int // the first places of the set, which are free now
}

// Changes returns the changes of s, which must have a journal.
func (s *Store) Changes() *Changes {
	if s.keyspaces.journal == nil {
		panic("memstore: changes of a store without a journal")
	}
	return &Changes{store: s}
}

// Next calls visit for some keys of one space that have changed, with their states,
// and returns that space. The state is empty if the key was dropped before it
// expired. A key is visited once after each change, or after several. visit is
// called under a lock, must not keep or change the state, and must not call the
// store. Next reports false at the end of a round: all keys were visited that had
// changed when the round began. The next call begins another round. Keys that
// were not visited are kept for later calls.
func (c *Changes) Next(visit func(key uint64, state []uint64)) (p Part, ok bool) {
	if len(c.taken) == 0 && !c.find() {
		return Part{}, false
	}
	ks := c.keyspaces[0]
	for range atOnceShards {
		if len(c.taken) == 0 {
			break
		}
		c.turn = (c.turn + 1) % len(c.taken)
		if t := &c.taken[c.turn]; !t.visit(visit) {
			c.next(t, ks)
		}
	}
	return ks.part(), true
}

// next replaces t, of which all keys were visited, by the next shard of ks.
func (c *Changes) next(t *taken, ks *keyspace) {
	c.spare.put(t.set, atOnceShards)
	if next, ok := c.take(ks); ok {
		*t = next
		return
	}
	last := len(c.taken) - 1
	*t, c.taken[last] = c.taken[last], taken{}
	c.taken = c.taken[:last]
}

// visit calls f for some keys of t with their states. It reports whether there are more.
func (t *taken) visit(f func(key uint64, state []uint64)) (more bool) {
	var room [atOnceKeys]table.Hash
	keys := t.cut(room[:0])
	sh := t.shard
	var at [atOnceKeys]table.Ref
	sh.stripe.mu.Lock()
	for i, h := range keys { // first, so that the processor waits for several keys at a time
		at[i] = sh.table.Find(h)
	}
	for i, h := range keys {
		f(uint64(h), at[i].State())
	}
	if more = len(keys) == cap(keys); !more {
		sh.dirty.taken = 0
	}
	sh.stripe.mu.Unlock()
	return more
}

// cut moves keys of t to keys, until that is full or t is empty.
func (t *taken) cut(keys []table.Hash) []table.Hash {
	if t.zero {
		keys, t.zero = append(keys, 0), false
	}
	for {
		for ; t.read < len(t.set) && len(keys) < cap(keys); t.read++ {
			if h := t.set[t.read]; h != 0 {
				keys, t.set[t.read] = append(keys, h), 0
			}
		}
		last := len(t.full) - 1
		if t.read < len(t.set) || last < 0 {
			return keys
		}
		t.set, t.full, t.read = t.full[last], t.full[:last], 0
	}
}

// find takes the next shards in which keys have changed. It reports false at the end
// of a round.
func (c *Changes) find() bool {
	if len(c.keyspaces) == 0 {
		c.keyspaces, c.shard = c.store.keyspaces.all(), 0
	}
	for ; len(c.keyspaces) > 0; c.keyspaces, c.shard = c.keyspaces[1:], 0 {
		ks := c.keyspaces[0]
		if c.shard == 0 && !ks.marked.Swap(false) {
			continue
		}
		for len(c.taken) < atOnceShards {
			t, ok := c.take(ks)
			if !ok {
				break
			}
			c.taken = append(c.taken, t)
		}
		if len(c.taken) > 0 {
			return true
		}
	}
	return false
}

// take takes what has changed in the next shard of ks in which something has. It
// reports false if there is none.
func (c *Changes) take(ks *keyspace) (t taken, ok bool) {
	for c.shard < len(ks.shards) {
		sh := ks.shards[c.shard].Load()
		c.shard++
		if sh == nil {
			continue
		}
		sh.stripe.mu.Lock()
		if ok = sh.dirty.any(); ok {
			t = taken{shard: sh, changed: sh.dirty.take(&c.spare)}
		}
		sh.stripe.mu.Unlock()
		if ok {
			return t, true
		}
	}
	return taken{}, false
}
