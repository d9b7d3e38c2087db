package memstore

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// Ask is one op of [Store.Several]. It says less than a [store.Op], and its answer is
// written to where the caller needs it.
type Ask struct {
	Space  *store.Space
	Limit  *window.Compiled // without holds and bans
	Key    KeyHash
	Hits   window.Hits
	Role   store.Role // but Look
	Result *window.Result
}

// KeyHash stands for a key within a store; see [Store.Hash].
type KeyHash table.Hash

// Hash returns what stands for key.
func (s *Store) Hash(key []byte) KeyHash { return KeyHash(s.hash(key)) }

// Member returns what stands for a member that a limit with measure [window.Distinct]
// counts.
func (s *Store) Member(member string) uint64 { return s.memberString(member) }

// MostFew is the most ops that [Store.Few] decides.
const MostFew = 8

// UsualFew is how many ops most calls of [Store.Few] have at most. Places for more take
// 10 ns to clear, so a caller has memory of both lengths.
const UsualFew = 4

// Place is memory for one op of [Store.Few]. Its zero value is empty.
type Place = place

// Place sets p, which is empty, to an op under limit, which has no holds and bans. The
// op counts hits for a key by its hash. It has any role but [store.Look]. Its answer will
// be written into r.
func (s *Store) Place(p *Place, space *store.Space, limit *window.Compiled, role store.Role, key KeyHash, hits window.Hits, r *window.Result) {
	ks := s.keyspaces.of(space, limit, s.shards)
	if ks == nil {
		return // closed, as Few finds
	}
	p.keyspace, p.limit, p.hits, p.role, p.answer = ks, limit, hits, role, r
	p.key, p.most = table.Hash(key), space.MaxKeys()
	p.shard = ks.shard(numberOf(p.key, s.shards))
}

// Few decides a check, a take or a record as [Store.Call] does with the ops that
// [Store.Place] has set, one to MostFew, on different spaces. It reports false, and has
// counted nothing, where Call has to decide: if there may be no room for a key. The
// places cannot be used again.
//
// It takes two thirds of the time of Call: the caller hashes a key that several ops
// share once, an answer is written to where it is needed, each shard is visited once
// before and once after the decision, and a plain log is looked at once.
func (s *Store) Few(ctx context.Context, verb store.Verb, places []Place) (done bool, err error) {
	if err := s.ready(ctx); err != nil {
		return true, err
	}
	onWall, sorted, last := false, true, uint64(0)
	for i := range places {
		ks := places[i].keyspace
		if ks == nil {
			return true, store.ErrClosed
		}
		onWall = onWall || ks.onWall
		sorted = sorted && last < ks.number
		last = ks.number
	}
	return s.runFew(verb, places, onWall, sorted), nil
}

// MostAsks is the most ops that [Store.Several] decides.
const MostAsks = 16

// Several decides a check, a take or a record of one to MostAsks ops, as [Store.Few] does.
// Several of them may be on one space. It also reports false if two ops are about the same
// key.
func (s *Store) Several(ctx context.Context, verb store.Verb, asks []Ask) (done bool, err error) {
	if err := s.ready(ctx); err != nil {
		return true, err
	}
	b := s.bench()
	defer s.benches.Put(b)
	seats, places := b.seats[:len(asks)], b.places[:len(asks)]
	defer clear(places)
	onWall := false
	for i := range asks {
		a := &asks[i]
		ks := s.keyspaces.of(a.Space, a.Limit, s.shards)
		if ks == nil {
			return true, store.ErrClosed
		}
		onWall = onWall || ks.onWall
		at := i // sorted as they come: places take six times as long to move
		for ; at > 0 && (ks.number < seats[at-1].keyspace.number || ks == seats[at-1].keyspace && table.Hash(a.Key) < seats[at-1].key); at-- {
			seats[at] = seats[at-1]
		}
		seats[at] = seat{ks, table.Hash(a.Key), i}
	}
	for i := range seats {
		t, p := &seats[i], &places[i]
		a := &asks[t.ask]
		p.keyspace, p.limit, p.hits, p.role, p.answer, p.key = t.keyspace, a.Limit, a.Hits, a.Role, a.Result, t.key
		p.most = a.Space.MaxKeys()
		p.shard = t.keyspace.shard(numberOf(p.key, s.shards))
	}
	if overlap(places) {
		return false, nil
	}
	return s.runFew(verb, places, onWall, true), nil
}

// bench is room for the ops of a call that are many. It is not on the stack: a goroutine
// that has just started would have to grow its stack for it.
type bench struct {
	seats  [MostAsks]seat
	places [MostAsks]place // cleared
}

// bench returns a bench from the pool.
func (s *Store) bench() *bench {
	if b, ok := s.benches.Get().(*bench); ok {
		return b
	}
	return new(bench)
}

// seat is where the op of an ask goes in the order in which places are locked.
type seat struct {
	keyspace *keyspace
	key      table.Hash
	ask      int
}

// callFew does what Few does for ops. It reports false, too, if one of them says more
// than an Ask can.
func (s *Store) callFew(verb store.Verb, ops []store.Op) (done bool) {
	if verb > store.Record {
		return false
	}
	var room [MostFew]place
	places := room[:len(ops)]
	onWall, sorted := false, true
	for i := range ops {
		op, p := &ops[i], &places[i]
		if op.Hold != nil || op.CountDenied || op.Role == store.Look || op.Limit.Holds() || op.Limit.Bans() {
			return false
		}
		ks := s.keyspaces.of(op.Space, op.Limit, s.shards)
		if ks == nil {
			return false
		}
		onWall = onWall || ks.onWall
		p.keyspace, p.limit, p.hits, p.role, p.answer = ks, op.Limit, s.hits(op), op.Role, &op.Result
		p.key = s.hash(op.Key)
		p.shard = ks.shard(numberOf(p.key, s.shards))
		sorted = sorted && (i == 0 || places[i-1].keyspace.number < ks.number)
	}
	return s.runFew(verb, places, onWall, sorted)
}

// runFew decides the call of Few, whose ops have their shards. sorted reports whether
// they are in the order in which places are locked, on different keys.
func (s *Store) runFew(verb store.Verb, places []place, onWall, sorted bool) (done bool) {
	if !sorted {
		order(places)
		for i := 1; i < len(places); i++ {
			if places[i-1].keyspace == places[i].keyspace {
				return false
			}
		}
	}
	m := s.clock.now(onWall)
	known, later := s.memory.taken() == roomForAll, false
	for i := range places {
		p := &places[i]
		if !p.shared || first(places, i) {
			p.shard.mu.Lock()
			later = later || m.steady < p.shard.latest
		}
		if p.find() {
			later = true
		}
		known = known && (p.at.Known() || p.reserveFew(verb)) && !p.keyspace.dead.Load()
		if verb != store.Check {
			p.shard.changes(p.key)
		}
	}
	if known {
		if later {
			m = s.clock.again(m, onWall)
		}
		s.decideFew(verb, places, m)
	}
	due := false
	for i := range places {
		p := &places[i]
		p.release()
		if p.shared && i+1 < len(places) && p.shard == places[i+1].shard {
			continue
		}
		if known && p.tend(s) {
			due = true
		}
		p.shard.mu.Unlock()
	}
	if due {
		s.sweepNext()
	}
	return known
}

// reserveFew counts the key of p, which is new. It reports false if there may be no room.
func (p *place) reserveFew(verb store.Verb) bool {
	if p.most == 0 {
		return false
	}
	if adds(verb) && p.hits.N > 0 {
		p.reserved = p.keyspace.reserve(p.most)
		return p.reserved
	}
	return true
}

// decideFew decides the call of Few at m. There is room for all keys, and their shards
// are locked.
func (s *Store) decideFew(verb store.Verb, places []place, m moment) {
	read := s.clock.floored(m)
	last := -1 // the last enforcing op
	for i := range places {
		p := &places[i]
		p.shard.latest = m.steady
		p.read, p.now = read, read.of(p.keyspace.onWall)
		if p.shared {
			p.findKept(verb, &s.clock)
		}
		switch {
		case verb == store.Check:
			p.look(p.answer)
		case verb == store.Record:
			s.count(p, store.Record, p.answer)
		case p.role == store.Enforce:
			last = i
		}
	}
	if verb == store.Take {
		s.takeFew(places, last)
	}
}

// findKept looks the key up again, and keeps the room of one that has expired: another
// op might take it.
func (p *place) findKept(verb store.Verb, c *clock) {
	if p.find(); adds(verb) && p.hits.N > 0 && p.at.Known() {
		p.expire(c)
	}
}

// takeFew takes. It looks at the enforcing ops and then counts them. The last one is not
// looked at before it is counted, unless its state may be a log, where a look saves as
// much as it costs.
func (s *Store) takeFew(places []place, last int) {
	admitted := true
	for i := range places {
		p := &places[i]
		p.findAgain()
		switch {
		case p.role == store.Enforce && i == last && admitted && !p.limit.Logs():
			s.count(p, store.Take, p.answer)
			admitted = p.answer.Allowed
		case p.role == store.Enforce:
			*p.answer = window.Result{}
			p.looked = p.limit.Look(p.answer, p.at.State(), p.now, p.hits)
			admitted = admitted && p.answer.Allowed
		case p.role == store.Shadow:
			s.count(p, store.Take, p.answer)
		default:
			s.count(p, always, p.answer)
		}
	}
	if !admitted {
		return
	}
	for i := range places[:last+1] {
		p := &places[i]
		if p.role != store.Enforce || i == last && !p.limit.Logs() {
			continue
		}
		p.findAgain()
		state := window.State(p.at.State())
		next, ok := p.limit.TakeLooked(p.answer, state, p.hits, &p.looked)
		if !ok {
			s.count(p, store.Take, p.answer)
			continue
		}
		p.at.Resize(len(next))
		p.shard.mark(p.key)
	}
}
