package memstore

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

const (
	few = 8 // ops that a call can have without allocating

	// Each tendEvery-th call to a shard, and the first one in each tendAfter,
	// sweeps there and in another shard. Where there is much to reclaim, light
	// traffic does it as fast as heavy traffic.
	tendEvery = 64
	tendAfter = window.Instant(time.Millisecond / time.Microsecond)
)

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		c.Err = s.call(c.Verb, c.Ops)
	}
	return nil
}

// call decides the ops of one call.
func (s *Store) call(verb store.Verb, ops []store.Op) error {
	switch {
	case len(ops) == 0:
		return nil
	case len(ops) == 1:
		return s.doOne(verb, &ops[0])
	case len(ops) <= few:
		var places [few]place
		return s.doAll(verb, ops, places[:len(ops)])
	default:
		return s.doAll(verb, ops, make([]place, len(ops)))
	}
}

func (s *Store) doAll(verb store.Verb, ops []store.Op, places []place) error {
	for {
		if !s.locate(ops, places) {
			return store.ErrClosed
		}
		if overlap(places) {
			return store.ErrRepeated
		}
		lock(places)
		full := s.reserve(verb, places)
		if !dead(places) {
			if full == nil {
				s.evaluate(verb, places)
			}
			away := s.tend(places)
			unlock(places)
			if away {
				s.sweepNext()
			}
			return outage(full)
		}
		release(places)
		unlock(places)
	}
}

// locate finds the place of each op, and puts the places into the order in
// which they are locked. It is false when the store is closed.
func (s *Store) locate(ops []store.Op, places []place) bool {
	wall := false
	for i := range ops {
		op := &ops[i]
		t := s.tables.of(op.Space, op.Limit, s.shards)
		if t == nil {
			return false
		}
		wall = wall || t.onWall
		key := s.fingerprint(op.Key)
		places[i] = place{
			op: op, index: i, limit: op.Limit, hits: s.hits(op),
			table: t, key: key, shard: t.shard(key.shard(s.shards)),
		}
	}
	m := s.clock.read(wall)
	for i := range places {
		places[i].read = m
	}
	order(places)
	return true
}

// hits are what op asks for.
func (s *Store) hits(op *store.Op) window.Hits {
	h := window.Hits{N: max(op.N, 0)}
	if op.Limit.Distinct() {
		h.Member = maphash.Bytes(s.seeds.member, op.Member)
	}
	return h
}

// order puts places into the order in which they are locked: by table, and by
// hash, which is by shard. Few are most often in order already, as rules are in
// the order in which their tables were made.
func order(places []place) {
	if len(places) > few {
		slices.SortFunc(places, func(p, q place) int { return p.compare(&q) })
		return
	}
	for i := range places {
		for j := i; j > 0 && places[j].compare(&places[j-1]) < 0; j-- {
			places[j], places[j-1] = places[j-1], places[j]
		}
	}
}

func (p *place) compare(q *place) int {
	if p.table != q.table {
		return cmp.Compare(p.table.number, q.table.number)
	}
	return cmp.Compare(p.key, q.key)
}

// overlap marks the ordered places that share a shard, and says whether two of
// them are the same.
func overlap(places []place) (repeated bool) {
	for i := 1; i < len(places); i++ {
		if p, q := &places[i-1], &places[i]; p.shard == q.shard {
			p.shared, q.shared = true, true
			repeated = repeated || p.key == q.key
		}
	}
	return repeated
}

// first says whether places[i] is the first one in its shard.
func first(places []place, i int) bool {
	return i == 0 || places[i].shard != places[i-1].shard
}

func lock(places []place) {
	for i := range places {
		if first(places, i) {
			places[i].shard.mu.Lock()
		}
	}
}

func unlock(places []place) {
	for i := range places {
		if first(places, i) {
			places[i].shard.mu.Unlock()
		}
	}
}

// dead says whether a table was dropped before its places were locked.
func dead(places []place) bool {
	for i := range places {
		if places[i].table.dead.Load() {
			return true
		}
	}
	return false
}

// reserve dates and finds the ops, and counts a key for each that may add one.
// It returns the indexes of those for which there is no room; nil when there is
// room for all.
func (s *Store) reserve(verb store.Verb, places []place) (full []int) {
	for i := range places {
		p := &places[i]
		p.date(&s.clock)
		p.find()
		if adds(verb) && !p.reserve(s, p.op.Space.MaxKeys()) {
			full = append(full, p.index)
		}
	}
	if full != nil {
		release(places)
	}
	return full
}

// adds says whether verb can make a key.
func adds(verb store.Verb) bool { return verb == store.Take || verb == store.Record }

func release(places []place) {
	for i := range places {
		places[i].release()
	}
}

func outage(full []int) error {
	if full == nil {
		return nil
	}
	slices.Sort(full)
	return &store.OutageError{Ops: full, Err: store.ErrFull}
}

// tend reclaims a few expired keys in the shards of the call when it is time
// to, and says whether it is time to sweep somewhere else too.
func (s *Store) tend(places []place) (due bool) {
	release(places)
	for i := range places {
		if first(places, i) && places[i].tend(&s.clock) {
			due = true
		}
	}
	return due
}

// tend does so for one shard.
func (p *place) tend(c *clock) (due bool) {
	sh := p.shard
	if sh.calls++; sh.calls < tendEvery && p.read.steady-sh.tended < tendAfter {
		return false
	}
	sh.calls, sh.tended = 0, p.read.steady
	p.table.sweep(sh, budget{aFew, manySlots}, c.expiry(p.read, p.table))
	return true
}
