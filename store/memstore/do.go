package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
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

// Call decides ops as [Store.Do] does for one call. The error is the one that Do
// would return or would set as the call's Err.
func (s *Store) Call(ctx context.Context, verb store.Verb, ops []store.Op) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.call(verb, ops)
}

// call decides the ops of one call.
func (s *Store) call(verb store.Verb, ops []store.Op) error {
	switch {
	case len(ops) == 0:
		return nil
	case len(ops) == 1:
		return s.doOne(verb, &ops[0])
	case len(ops) <= onStack:
		if s.callFew(verb, ops) {
			return nil
		}
		return s.doFew(verb, ops)
	case len(ops) <= MostFew:
		return s.doSeveral(verb, ops)
	default:
		return s.doAll(verb, ops, make([]place, len(ops)))
	}
}

// onStack is the most ops whose places are on the stack. A goroutine that has just started
// would have to grow its stack for more.
const onStack = 8

// doFew does what doAll does. It is apart so that a call that callFew decides need not
// clear these places.
//
//go:noinline
func (s *Store) doFew(verb store.Verb, ops []store.Op) error {
	var places [onStack]place
	return s.doAll(verb, ops, places[:len(ops)])
}

// doSeveral does what doAll does. It takes the places, which are more than those of doFew,
// from a pool.
func (s *Store) doSeveral(verb store.Verb, ops []store.Op) error {
	room, ok := s.places.Get().(*[MostFew]place)
	if !ok {
		room = new([MostFew]place)
	}
	places := room[:len(ops)]
	err := s.doAll(verb, ops, places)
	clear(places)
	s.places.Put(room)
	return err
}

// doAll decides a call of several ops. places is room for as many.
func (s *Store) doAll(verb store.Verb, ops []store.Op, places []place) error {
	for {
		onWall, ok := s.locate(ops, places)
		if !ok {
			return store.ErrClosed
		}
		if _, repeated := overlap(places); repeated {
			return store.ErrRepeated
		}
		m := s.clock.now(onWall)
		latest := s.lockAll(places)
		if m.steady < latest { // a later call was decided in one of the stripes
			m = s.clock.again(m, onWall)
		}
		s.dateAll(places, m)
		if findAll(verb, places) {
			s.dateAll(places, s.clock.again(m, onWall))
		}
		full := s.reserve(verb, places)
		if !dead(places) {
			if full == nil {
				s.evaluate(verb, places)
			}
			due := s.tend(places)
			unlockAll(places)
			if due {
				s.sweepNext()
			}
			if full != nil {
				return s.outage(places, full)
			}
			return nil
		}
		release(places)
		unlockAll(places)
	}
}

// locate sets the place of each op, so that those that share a shard are neighbours. It
// reports whether one of them needs the time of day, and false when the store
// is closed.
func (s *Store) locate(ops []store.Op, places []place) (onWall, ok bool) {
	for i := range ops {
		op := &ops[i]
		ks := s.keyspaces.of(op.Space, op.Limit)
		if ks == nil {
			return false, false
		}
		onWall = onWall || ks.onWall
		key := s.hash(op.Key)
		places[i] = place{
			op: op, index: i, limit: op.Limit, hits: s.hits(op), hold: op.Hold,
			keyspace: ks, key: key, shard: ks.shard(s.numberOf(key)),
		}
	}
	order(places)
	return onWall, true
}

// order puts places into the order of their keyspaces and, in one, of their hashes. So
// those that share a shard are neighbours. Few places are most often in order already,
// because keyspaces are made in the order of the rules.
func order(places []place) {
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1].seat(), places[i].seat(); b.before(&a) {
			sortPlaces(places)
			return
		}
	}
}

// seat is what places are sorted by, and where one comes from. A place takes six times as
// long to move, so each is moved once.
type seat struct {
	keyspace uint64 // its number
	key      table.Hash
	from     int
}

// before reports whether a goes before b.
func (a *seat) before(b *seat) bool {
	return a.keyspace < b.keyspace || a.keyspace == b.keyspace && a.key < b.key
}

// sortPlaces sorts places.
func sortPlaces(places []place) {
	var room [MostFew]seat
	seats := room[:0]
	for i := range places {
		t := places[i].seat()
		t.from = i
		seats = append(seats, t)
	}
	if len(seats) <= MostFew {
		for i := range seats {
			for j := i; j > 0 && seats[j].before(&seats[j-1]); j-- {
				seats[j], seats[j-1] = seats[j-1], seats[j]
			}
		}
	} else {
		slices.SortFunc(seats, func(a, b seat) int {
			return cmp.Or(cmp.Compare(a.keyspace, b.keyspace), cmp.Compare(a.key, b.key))
		})
	}
	for i := range seats {
		if seats[i].from == i {
			continue
		}
		first, at := places[i], i // of a circle of places, each of which goes where the next one was
		for seats[at].from != i {
			from := seats[at].from
			places[at], seats[at].from = places[from], at
			at = from
		}
		places[at], seats[at].from = first, at
	}
}

// seat returns what p is sorted by.
func (p *place) seat() seat { return seat{keyspace: p.keyspace.number, key: p.key} }

// overlap marks the ordered places that share a shard, and reports whether some do, and
// whether two of them are the same.
func overlap(places []place) (shared, repeated bool) {
	for i := 1; i < len(places); i++ {
		if p, q := &places[i-1], &places[i]; p.shard == q.shard {
			p.shared, q.shared, shared = true, true, true
			repeated = repeated || p.key == q.key
		}
	}
	return shared, repeated
}

// first reports whether places[i] is the first one in its shard.
func first(places []place, i int) bool {
	return i == 0 || places[i].shard != places[i-1].shard
}

// dateAll dates the ops, whose stripes are locked, with m.
func (s *Store) dateAll(places []place, m moment) {
	floored := s.clock.floored(m)
	for i := range places {
		p := &places[i]
		p.shard.stripe.latest = m.steady
		p.read, p.now = floored, floored.of(p.keyspace.onWall)
		p.stamp()
	}
}

// dead reports whether a keyspace was dropped before its places were locked.
func dead(places []place) bool {
	for i := range places {
		if places[i].keyspace.dead.Load() {
			return true
		}
	}
	return false
}

// findAll finds the ops, and drops the answers of hot keys that verb may change:
// a take of a hot key must not see a part of the call. It reports true when it
// took back a lent state; see shard.find.
func findAll(verb store.Verb, places []place) (back bool) {
	for i := range places {
		p := &places[i]
		if p.find() {
			back = true
		}
		if verb != store.Check {
			p.shard.changes(p.key)
		}
	}
	return back
}

// reserve reserves a key for each that may add one. It
// returns the indexes of those for which there is no room; nil when there is
// room for all.
func (s *Store) reserve(verb store.Verb, places []place) (full []int) {
	locked := s.numbersOf(places)
	var others numbers // of locked, in which the call has no op for the keyspace
	for i := range places {
		p := &places[i]
		if i == 0 || p.keyspace != places[i-1].keyspace {
			others = locked
			for j := i; j < len(places) && places[j].keyspace == p.keyspace; j++ {
				others.remove(s.numberOf(places[j].key))
			}
		}
		p.findAgain()
		if adds(verb) && !p.reserve(s, verb, p.op.Space.MaxKeys(), others) {
			full = append(full, p.index)
		}
	}
	if full != nil {
		release(places)
	}
	return full
}

// adds reports whether verb can make a key. A check cannot, and answers as the take
// would: where there is no room for the key, the take is refused.
func adds(verb store.Verb) bool { return verb <= store.Record }

// release gives back what was reserved and not used.
func release(places []place) {
	for i := range places {
		places[i].release()
	}
}

// tend ends a call: it sweeps its shards when it is time to, and reports whether
// it is time to sweep somewhere else too.
func (s *Store) tend(places []place) (due bool) {
	release(places)
	for i := range places {
		if p := &places[i]; first(places, i) && !p.shard.rests(p.read.steady) && p.tend(s) {
			due = true
		}
	}
	return due
}
