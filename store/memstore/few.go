package memstore

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// KeyHash stands for a key within a store; see [Store.Hash].
type KeyHash table.Hash

// Hash returns what stands for key.
func (s *Store) Hash(key []byte) KeyHash { return KeyHash(s.hash(key)) }

// Member returns what stands for a member that a limit with measure [window.Distinct]
// counts.
func (s *Store) Member(member string) uint64 { return s.memberString(member) }

// MostFew is the most ops that [Store.Few] decides.
const MostFew = 16

// UsualFew is how many ops most calls of [Store.Few] have at most. Places for more take
// 10 ns to clear, so a caller has memory of both lengths.
const UsualFew = 4

// Place is memory for one op of [Store.Few]. Its zero value is empty.
type Place = place

// Set sets p, which is empty, to an op under limit, which has no holds and bans. The op
// counts hits for a key by its hash. It has any role but [store.Look]. Its answer will be
// written into r.
func (p *place) Set(space *store.Space, limit *window.Compiled, role store.Role, key KeyHash, hits window.Hits, r *window.Result) {
	p.space, p.limit, p.key, p.hits, p.role, p.answer = space, limit, table.Hash(key), hits, role, r
}

// Few decides a check, a take or a record as [Store.Call] does with the ops that
// [Place.Set] has set, one to MostFew. allowed reports whether all enforcing ops fit.
// done is false, and nothing is counted, where Call has to decide: if two ops are about
// the same key, and if there may be no room for a key. Few changes the order of places,
// which cannot be used again.
//
// It takes half of the time of Call: the caller hashes a key that several ops share once,
// which is also locked once, an answer is written to where it is needed, and each shard is
// visited once before and once after the decision.
func (s *Store) Few(ctx context.Context, verb store.Verb, places []Place) (allowed, done bool, err error) {
	if err := s.ready(ctx); err != nil {
		return false, true, err
	}
	onWall, sorted, last := false, true, uint64(0)
	number, alone := s.numberOf(places[0].key), true
	for i := range places {
		p := &places[i]
		ks := s.keyspaces.of(p.space, p.limit)
		if ks == nil {
			return false, true, store.ErrClosed
		}
		p.keyspace = ks
		n := s.numberOf(p.key)
		p.shard = ks.shard(n)
		alone = alone && n == number
		onWall = onWall || ks.onWall
		sorted = sorted && last < ks.number
		last = ks.number
	}
	var only *stripe
	if alone {
		only = places[0].shard.stripe
	}
	allowed, done = s.runFew(verb, places, onWall, sorted, only)
	return allowed, done, nil
}

// callFew does what Few does for ops. It reports false, too, if one of them says more
// than a Place can.
func (s *Store) callFew(verb store.Verb, ops []store.Op) (done bool) {
	if verb > store.Record {
		return false
	}
	var room [onStack]place
	places := room[:len(ops)]
	for i := range ops {
		op := &ops[i]
		if op.Hold != nil || op.CountDenied || op.Role == store.Look || op.Limit.Holds() || op.Limit.Bans() {
			return false
		}
		places[i].Set(op.Space, op.Limit, op.Role, KeyHash(s.hash(op.Key)), s.hits(op), &op.Result)
	}
	_, done, err := s.Few(context.Background(), verb, places)
	return done && err == nil // Call finds, too, that the store is closed
}

// runFew decides the call of Few, whose ops have their shards. sorted reports whether
// they are in the order of their keyspaces, which all differ. only is the stripe of all
// ops, or nil if they have several.
//
// It goes through the places twice while the stripes are locked. The first pass finds each
// key and looks; the second one counts and tends the shard. What is seldom needed is done
// in between, by mend: the first pass only notes that it is.
func (s *Store) runFew(verb store.Verb, places []place, onWall, sorted bool, only *stripe) (allowed, done bool) {
	shared := false
	if !sorted {
		order(places)
		var repeated bool
		if shared, repeated = overlap(places); repeated {
			return false, false
		}
	}
	m := s.clock.now(onWall)
	read := s.clock.floored(m)
	var latest window.Instant
	if only != nil {
		only.lock()
		latest = only.latest
	} else {
		latest = s.lockAll(places)
	}
	usual := !shared && m.steady >= latest && s.memory.taken() == roomForAll
	allowed = true
	for i := range places {
		p := &places[i]
		sh := p.shard
		at := sh.table.Find(p.key)
		if !at.Known() || at.Lent() {
			usual = false
		}
		p.at = at
		p.now = read.steady
		if p.keyspace.onWall {
			p.now = read.wall
		}
		if verb != store.Check {
			sh.changes(p.key)
		}
		if p.looks(verb) {
			p.lookFew(p.answer)
			if !p.answer.Allowed && p.role == store.Enforce {
				allowed = false
			}
		}
	}
	if !usual {
		if m, allowed, done = s.mend(verb, places, m, latest, onWall); !done {
			if only != nil {
				only.mu.Unlock()
			} else {
				unlockAll(places)
			}
			return false, false
		}
		read = s.clock.floored(m)
	}
	due := false
	for i := range places {
		p := &places[i]
		sh := p.shard
		sh.stripe.latest, p.read = m.steady, read
		if verb != store.Check && (allowed || p.role != store.Enforce) { // a record is allowed
			s.countFew(p, verb)
		}
		p.release()
		if p.shared && i+1 < len(places) && sh == places[i+1].shard {
			continue
		}
		if !sh.rests(m.steady) && p.tend(s) {
			due = true
		}
	}
	if only != nil {
		only.mu.Unlock()
	} else {
		unlockAll(places)
	}
	if due {
		s.sweepNext()
	}
	return allowed, true
}

// looks reports whether verb looks at the op before any op is counted.
func (p *place) looks(verb store.Verb) bool {
	return verb == store.Check || verb == store.Take && p.role == store.Enforce
}

// lookFew looks at an op whose key was found.
func (p *place) lookFew(r *window.Result) {
	*r = window.Result{}
	p.state = p.at.State()
	p.looked = p.limit.Look(r, p.state, p.now, p.hits)
}

// mend finds and looks again, if a key is new, a state was lent, ops share a shard, or a
// later call, dated with latest, was decided in one of the stripes. It returns the moment
// of the call. It reports false if there may be no room for a key, or if a keyspace was
// dropped.
//
//go:noinline
func (s *Store) mend(verb store.Verb, places []place, m moment, latest window.Instant, onWall bool) (now moment, allowed, ok bool) {
	ok, later := s.memory.taken() == roomForAll, m.steady < latest
	for i := range places {
		p := &places[i]
		if p.find() {
			later = true
		}
		ok = ok && (p.at.Known() || p.reserveFew(verb) && !p.keyspace.dead.Load())
	}
	if !ok {
		release(places)
		return m, false, false
	}
	if later {
		m = s.clock.again(m, onWall)
	}
	read := s.clock.floored(m)
	allowed = true
	for i := range places {
		p := &places[i]
		p.read, p.now = read, read.of(p.keyspace.onWall)
		if p.shared {
			p.findKept(verb, &s.clock)
		}
		if p.looks(verb) {
			p.lookFew(p.answer)
			allowed = allowed && (p.answer.Allowed || p.role != store.Enforce)
		}
	}
	return m, allowed, true
}

// countFew counts an op. If it is an enforcing one of a take, lookFew has looked at it.
func (s *Store) countFew(p *place, verb store.Verb) {
	if p.shared {
		p.find()
		p.state = p.at.State()
	}
	if verb == store.Take && p.role == store.Enforce {
		if next, ok := p.limit.TakeLooked(p.answer, p.state, p.hits, &p.looked); ok {
			p.at.Resize(len(next))
			p.shard.mark(p.key)
			return
		}
	}
	if verb == store.Take && p.role > store.Shadow {
		verb = always
	}
	s.count(p, verb, p.answer)
}

// reserveFew counts the key of p, which is new. It reports false if there may be no room.
func (p *place) reserveFew(verb store.Verb) bool {
	if adds(verb) && p.hits.N > 0 {
		p.reserved = p.keyspace.reserve(p.space.MaxKeys())
		return p.reserved
	}
	return true
}

// findKept looks the key up again, and keeps the room of one that has expired: another
// op might take it.
func (p *place) findKept(verb store.Verb, c *clock) {
	if p.find(); adds(verb) && p.hits.N > 0 && p.at.Known() {
		p.expire(c)
	}
}
