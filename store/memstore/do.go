package memstore

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// place is where the key of one op is.
type place struct {
	op    *store.Op
	index int // of the op in its call

	table    *table
	number   int // of the shard in the table
	shard    *shard
	key      fingerprint
	now      window.Instant
	hits     window.Hits
	expiry   expiry
	reserved bool // the table has counted a key that is not there yet
}

const (
	few = 8 // ops that a call can have without allocating

	swept     = 4  // slots that a call looks at in each shard that it locks
	sweptFull = 64 // slots that it looks at elsewhere when the table is full

	awayEvery = 16 // calls to a shard until one also sweeps somewhere else
	sweptAway = 16 // slots that it then looks at
)

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, verb store.Verb, ops []store.Op) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	switch {
	case len(ops) == 0:
		return nil
	case len(ops) == 1:
		var places [1]place
		return s.run(verb, ops, places[:])
	case len(ops) <= few:
		var places [few]place
		return s.run(verb, ops, places[:len(ops)])
	default:
		return s.run(verb, ops, make([]place, len(ops)))
	}
}

func (s *Store) run(verb store.Verb, ops []store.Op, places []place) error {
	m := s.clock.read()
	for {
		if !s.locate(m, ops, places) {
			return store.ErrClosed
		}
		if repeated(places) {
			return store.ErrRepeated
		}
		lock(places)
		s.date(m, places)
		full := s.reserve(verb, places)
		if !dead(places) {
			if full == nil {
				s.evaluate(verb, places)
			}
			away := s.tend(places)
			unlock(places)
			if away {
				s.sweepNext(m, sweptAway)
			}
			return outage(full)
		}
		release(places)
		unlock(places)
	}
}

// locate finds the place of each op, and puts the places into the order in
// which they are locked. It is false when the store is closed.
func (s *Store) locate(m moment, ops []store.Op, places []place) bool {
	for i := range ops {
		op, p := &ops[i], &places[i]
		t := s.tables.of(op, s.shards)
		if t == nil {
			return false
		}
		*p = place{op: op, index: i, table: t, key: s.fingerprint(op.Key)}
		p.number = s.shardOf(p.key)
		p.shard = t.shard(p.number)
		p.expiry = s.clock.expiry(m, t.limit.Load())
		p.hits.N = max(op.N, 0)
		if op.Limit.Measure == window.Distinct {
			p.hits.Member = maphash.Bytes(s.seeds.member, op.Member)
		}
	}
	if len(places) > 1 {
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(
				cmp.Compare(a.table.number, b.table.number),
				cmp.Compare(a.number, b.number),
				cmp.Compare(a.key.hi, b.key.hi),
				cmp.Compare(a.key.lo, b.key.lo),
			)
		})
	}
	return true
}

// repeated says whether two of the ordered places are the same.
func repeated(places []place) bool {
	for i := 1; i < len(places); i++ {
		if places[i].shard == places[i-1].shard && places[i].key == places[i-1].key {
			return true
		}
	}
	return false
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

// date sets the instant of each op, once its place is locked: a key of theirs
// may have expired and been reclaimed while the call waited for the locks, and
// m is then too early for what it forgot.
func (s *Store) date(m moment, places []place) {
	m = s.clock.floored(m)
	for i := range places {
		places[i].now = m.of(places[i].op.Limit)
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

// reserve counts a key for each op that may add one, and returns the indexes of
// the ops for which there is no room; nil when there is room for all.
func (s *Store) reserve(verb store.Verb, places []place) (full []int) {
	if verb != store.Take && verb != store.Record {
		return nil
	}
	for i := range places {
		p := &places[i]
		if p.hits.N == 0 {
			continue
		}
		g, _, ok := p.shard.find(p.key)
		if ok {
			continue
		}
		most := p.op.Space.MaxKeys
		if most == 0 {
			most = store.DefaultMaxKeys
		}
		p.reserved = p.table.reserve(most) || p.table.reclaim(p.shard, g, p.expiry) && p.table.reserve(most)
		if !p.reserved {
			full = append(full, p.index)
			p.table.full.Add(1)
			s.full.Add(1)
		}
	}
	if full != nil {
		release(places)
	}
	return full
}

// reclaim looks for expired keys in a full table: in the segment g of the shard
// that is locked, and a few elsewhere.
func (t *table) reclaim(sh *shard, g *segment, e expiry) bool {
	n := 0
	if g != nil && g.earliest <= e.horizon {
		n = sh.reclaim(g, e)
		t.keys.Add(int64(-n))
	}
	return n+t.sweepAround(sweptFull, e) > 0
}

// release gives back what was reserved and not used.
func release(places []place) {
	for i := range places {
		if p := &places[i]; p.reserved {
			p.table.keys.Add(-1)
			p.reserved = false
		}
	}
}

func outage(full []int) error {
	if full == nil {
		return nil
	}
	slices.Sort(full)
	return &store.OutageError{Ops: full, Err: store.ErrFull}
}

// tend reclaims a few expired keys in the shards of the call, and says whether
// it is time to sweep somewhere else too.
func (s *Store) tend(places []place) (away bool) {
	release(places)
	for i := range places {
		if p := &places[i]; first(places, i) {
			p.table.sweep(p.shard, swept, p.expiry)
			p.shard.calls++
			away = away || p.shard.calls%awayEvery == 0
		}
	}
	return away
}
