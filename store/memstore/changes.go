package memstore

import (
	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store/memstore/internal/table"
)

const (
	// atOnceShards is how many shards a changeReader reads in turn. A mutex prefers the
	// goroutine that runs: a reader that locks a shard again right after it has
	// unlocked it keeps the calls that wait for it out for up to a millisecond.
	atOnceShards = 8

	// atOnceKeys is how many keys are read under one lock, in some microseconds.
	atOnceKeys = 32
)

// changeReader is what [journal.Journal.Changes] returns.
type changeReader struct {
	store *Store

	keyspaces []*keyspace // of this round, that are not read yet
	shard     int         // the next one of the first of them
	taken     []taken     // shards of the first of them with keys that are not visited yet
	turn      int         // the one of taken whose turn it is

	// records are shards of keyspaces of records, whose keys were taken when the round began and are visited
	// at its end: whoever finds a record then also finds what its call has counted, which was marked
	// before and is visited in between. Those of one keyspace follow each other.
	records []taken

	spare spareSets // for shards whose keys are taken
}

// taken are the keys of a shard that had changed when a reader came by.
type taken struct {
	changed
	shard *shard
	read  int // the first slots of the set, which are free now
}

// Changes implements [journal.Journal].
func (s journaled) Changes() journal.Reader {
	return &changeReader{store: s.Store}
}

// Next implements [journal.Reader].
func (c *changeReader) Next(visit func(p journal.Part, key uint64, state []uint64)) (ok bool) {
	if len(c.taken) == 0 && !c.find() {
		return false
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
	return true
}

// next replaces t, of which all keys were visited, by the next shard of ks.
func (c *changeReader) next(t *taken, ks *keyspace) {
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
func (t *taken) visit(f func(p journal.Part, key uint64, state []uint64)) (more bool) {
	var room [atOnceKeys]table.Hash
	keys := t.cut(room[:0])
	sh := t.shard
	var at [atOnceKeys]table.Ref
	sh.stripe.mu.Lock()
	for i, h := range keys { // first, so that the processor waits for several keys at a time
		at[i] = sh.table.Find(h)
	}
	p := sh.dirty.keyspace.part() // under the lock: states are counted under this limit or an earlier one
	for i, h := range keys {
		f(p, uint64(h), at[i].State())
		if at[i].Known() && sh.names != nil {
			if name := sh.names.Find(h).State(); len(name) > 0 && name[0]&inJournal == 0 {
				name[0] |= inJournal
				p.Names = true
				f(p, uint64(h), name)
				p.Names = false
			}
		}
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
func (c *changeReader) find() bool {
	if len(c.keyspaces) == 0 && len(c.records) == 0 {
		c.begin()
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
	if len(c.records) == 0 {
		return false
	}
	ks, n := c.records[0].shard.dirty.keyspace, 0
	for n < len(c.records) && c.records[n].shard.dirty.keyspace == ks {
		n++
	}
	c.taken, c.records = append(c.taken, c.records[:n]...), c.records[n:]
	c.keyspaces, c.shard = []*keyspace{ks}, len(ks.shards) // of which no others are taken
	return true
}

// begin begins a round.
func (c *changeReader) begin() {
	c.keyspaces, c.records = nil, nil
	for _, ks := range c.store.keyspaces.all() {
		if !ks.records {
			c.keyspaces = append(c.keyspaces, ks)
			continue
		}
		c.shard = 0
		for ok := ks.marked.Swap(false); ok; {
			var t taken
			if t, ok = c.take(ks); ok {
				c.records = append(c.records, t)
			}
		}
	}
	c.shard = 0
}

// take takes what has changed in the next shard of ks in which something has. It
// reports false if there is none.
func (c *changeReader) take(ks *keyspace) (t taken, ok bool) {
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
