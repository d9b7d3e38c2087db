package memstore

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// Itself implements [store.Single] and [store.Caller].
func (s *Store) Itself() store.Store { return s }

// One implements [store.Single]. Unlike Do it needs no [store.Op] on the heap and no
// copy of the key.
func (s *Store) One(ctx context.Context, verb store.Verb, space *store.Space, limit *window.Compiled, key, member string, n int64) (r window.Result, err error) {
	err = s.OneInto(ctx, &r, verb, space, limit, key, member, n)
	return r, err
}

// OneInto decides as One does, and writes the answer into r. It saves a copy of the
// answer, which right after its fields were written costs up to 10 ns.
func (s *Store) OneInto(ctx context.Context, r *window.Result, verb store.Verb, space *store.Space, limit *window.Compiled, key, member string, n int64) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	hits := window.Hits{N: max(n, 0)}
	if limit.Distinct() {
		hits.Member = s.memberString(member)
	}
	return s.oneHash(r, verb, space, limit, s.hashString(key), hits)
}

// OneKey decides as OneInto does, for a key of bytes and under a limit that counts hits.
func (s *Store) OneKey(ctx context.Context, r *window.Result, verb store.Verb, space *store.Space, limit *window.Compiled, key []byte, n int64) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.oneHash(r, verb, space, limit, s.hash(key), window.Hits{N: max(n, 0)})
}

// oneHash decides as OneInto does, for a key by its hash. OneInto, OneKey and doOne share
// it. It finds the keyspace and the shard without enter, because a call more costs 2 ns.
func (s *Store) oneHash(r *window.Result, verb store.Verb, space *store.Space, limit *window.Compiled, h table.Hash, hits window.Hits) error {
	ks := s.keyspaces.of(space, limit)
	if ks == nil {
		return store.ErrClosed
	}
	sh := ks.shard(s.numberOf(h))
	if verb <= store.Take && s.takeHot(ks, sh, h, limit, verb, hits.N, r) {
		return nil
	}
	return s.one(&place{keyspace: ks, shard: sh, limit: limit, key: h, hits: hits}, verb, space, r)
}

// one decides a call with a single op under the lock of its shard. p has been entered,
// and has the key, the limit and the hits.
func (s *Store) one(p *place, verb store.Verb, space *store.Space, r *window.Result) error {
	if err := s.lock(p, verb, space); err != nil {
		return err
	}
	switch {
	case verb == store.Check:
		p.look(r)
	case verb == store.Take:
		if !p.takeInPlace(r) {
			s.count(p, verb, r)
		}
		p.warm(r)
	default:
		s.count(p, verb, r)
	}
	s.leave(p)
	return nil
}

// takeInPlace does what count does for a take of a known key that needs no more
// memory, under a limit without holds and bans. It reports false, and has changed
// nothing, where count has to decide. It saves a tenth of the instructions of a take.
func (p *place) takeInPlace(r *window.Result) bool {
	if p.hits.N == 0 || p.limit.Holds() || p.limit.Bans() {
		return false
	}
	*r = window.Result{}
	if !p.takeEnds(r) {
		state := window.State(p.at.State())
		if len(state) == 0 {
			return false
		}
		next, ok := p.limit.TakeInPlace(r, state, p.now, p.hits)
		if !ok {
			return false
		}
		if r.Allowed {
			p.at.Resize(len(next))
		}
	}
	if r.Allowed {
		p.shard.changes(p.key)
		p.shard.mark(p.key)
	}
	return true
}

// takeEnds does what takeInPlace does where the ends of the state suffice: those are in
// the key's slot. With a million keys in sliding windows a take of a key with more than
// three hits saves up to two cache misses, and the average take 6 % of its time.
func (p *place) takeEnds(r *window.Result) bool {
	first, last, words, ok := p.at.Ends()
	if !ok || p.hits.N != 1 {
		return false
	}
	next, ok := p.limit.TakeEnds(r, window.Ends{First: first, Last: last, Words: words}, p.now)
	if ok && r.Allowed && !p.shard.table.Append(p.at, next) {
		*r = window.Result{}
		return false
	}
	return ok
}

// doOne decides a call with a single op.
func (s *Store) doOne(verb store.Verb, op *store.Op) error {
	h, hits := s.hash(op.Key), s.hits(op)
	if op.Hold == nil && (verb == store.Check || verb == store.Take && op.Role <= store.Shadow && !op.CountDenied) {
		return s.oneHash(&op.Result, verb, op.Space, op.Limit, h, hits)
	}
	ks, sh := s.enter(op.Space, op.Limit, h)
	if ks == nil {
		return store.ErrClosed
	}
	p := place{keyspace: ks, shard: sh, limit: op.Limit, key: h, hits: hits, hold: op.Hold, op: op}
	if err := s.lock(&p, verb, op.Space); err != nil {
		return err
	}
	p.stamp()
	switch {
	case verb == store.Check:
		p.look(&op.Result)
	case verb == store.Take && op.Role == store.Look:
		s.lookOnly(&p, op)
	case verb == store.Take && op.Role == store.Always:
		s.count(&p, always, &op.Result)
	case verb == store.Cancel:
		if s.count(&p, verb, &op.Result); p.givesBack(op.Result.Held) {
			p.find()
			s.count(&p, giveBack, &op.Result)
		}
	default:
		s.count(&p, verb, &op.Result)
		if verb == store.Take && op.CountDenied && !op.Result.Allowed {
			s.recordDenied(&p, &op.Result)
		}
	}
	s.leave(&p)
	return nil
}

// enter finds the keyspace and the shard of the only op in a call. The keyspace is nil
// when the store is closed.
func (s *Store) enter(space *store.Space, limit *window.Compiled, h table.Hash) (*keyspace, *shard) {
	ks := s.keyspaces.of(space, limit)
	if ks == nil {
		return nil, nil
	}
	sh := ks.shard(s.numberOf(h))
	return ks, sh
}

// lock locks and finds the place of the only op in a call, which has been entered,
// and makes sure that there is room for its key. After an error nothing is locked.
func (s *Store) lock(p *place, verb store.Verb, space *store.Space) error {
	for {
		ks, st := p.keyspace, p.shard.stripe
		m := s.clock.now(ks.onWall)
		st.lock()
		p.dated(s, st.date(&s.clock, m, ks.onWall))
		if p.find() {
			m = s.clock.again(m, ks.onWall)
			st.latest = m.steady
			p.dated(s, m)
		}
		if p.at.Known() && !s.memory.bounded() {
			return nil
		}
		if adds(verb) && !p.reserve(s, verb, space.MaxKeys(), numbers{}) {
			st.mu.Unlock()
			return s.outage([]place{*p}, []int{0})
		}
		// A keyspace that has keys, or a reservation for one, is not dropped.
		if p.at.Known() || !ks.dead.Load() {
			return nil
		}
		p.release()
		st.mu.Unlock()
		if p.keyspace, p.shard = s.enter(space, p.limit, p.key); p.keyspace == nil {
			return store.ErrClosed
		}
	}
}

// dated dates the call with the reading m.
func (p *place) dated(s *Store, m moment) {
	p.read = s.clock.floored(m)
	p.now = p.read.of(p.keyspace.onWall)
}

// tendHot sweeps after a take of the hot key h, which has not locked its shard sh.
func (s *Store) tendHot(ks *keyspace, sh *shard, h table.Hash) {
	st := sh.stripe
	if !st.mu.TryLock() {
		return
	}
	p := place{keyspace: ks, shard: sh, key: h, read: s.clock.read()}
	due := !sh.rests(p.read.steady) && p.tend(s)
	st.mu.Unlock()
	if due {
		s.sweepNext()
	}
}

// leave ends the call that lock began.
func (s *Store) leave(p *place) {
	p.release()
	due := !p.shard.rests(p.read.steady) && p.tend(s)
	p.shard.stripe.mu.Unlock()
	if due {
		s.sweepNext()
	}
}
