package memstore

import (
	"context"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore/internal/table"
	"github.com/weirhq/weir/window"
)

// Ask is one op of [Store.Few]. It says less than a [store.Op], and its answer is
// written to where the caller needs it.
type Ask struct {
	Space  *store.Space
	Limit  *window.Compiled // that counts hits, without holds and bans
	Key    KeyHash
	Role   store.Role // but Look
	Result *window.Result
}

// KeyHash stands for a key within a store; see [Store.Hash].
type KeyHash table.Hash

// Hash returns what stands for key.
func (s *Store) Hash(key []byte) KeyHash { return KeyHash(s.hash(key)) }

// MostFew is the most ops that [Store.Few] decides.
const MostFew = 8

// Few decides a check, a take or a record of n hits, at least one, as [Store.Call] does
// with an op for each of asks, two to MostFew, on different spaces. It reports false,
// and has counted nothing, where Call has to decide: if a key is new, and if there may
// be no room.
//
// It takes two thirds of the time of Call: the caller hashes a key that several asks
// share once, each shard is visited once before and once after the decision, and a
// plain log is looked at once.
func (s *Store) Few(ctx context.Context, verb store.Verb, asks []Ask, n int64) (done bool, err error) {
	if err := s.ready(ctx); err != nil {
		return true, err
	}
	var room [MostFew]place
	places := room[:len(asks)]
	onWall, sorted := false, true
	for i := range asks {
		a, p := &asks[i], &places[i]
		ks := s.keyspaces.of(a.Space, a.Limit, s.shards)
		if ks == nil {
			return true, store.ErrClosed
		}
		onWall = onWall || ks.onWall
		p.keyspace, p.limit, p.hits.N, p.role, p.answer = ks, a.Limit, n, a.Role, a.Result
		p.key = table.Hash(a.Key)
		p.shard = ks.shard(numberOf(p.key, s.shards))
		sorted = sorted && (i == 0 || places[i-1].keyspace.number < ks.number)
	}
	if !sorted {
		order(places)
		for i := 1; i < len(places); i++ {
			if places[i-1].keyspace == places[i].keyspace {
				return false, nil
			}
		}
	}
	m := s.clock.now(onWall)
	known, later := s.memory.taken() == roomForAll, false
	for i := range places {
		p := &places[i]
		p.shard.mu.Lock()
		back := p.find()
		later = later || back || m.steady < p.shard.latest
		known = known && p.at.Known() && !p.keyspace.dead.Load()
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
		if known && p.tend(s) {
			due = true
		}
		p.shard.mu.Unlock()
	}
	if due {
		s.sweepNext()
	}
	return known, nil
}

// decideFew decides the call of Few at m. All keys are known, and their shards locked.
func (s *Store) decideFew(verb store.Verb, places []place, m moment) {
	read := s.clock.floored(m)
	admitted := true
	for i := range places {
		p := &places[i]
		p.shard.latest = m.steady
		p.read, p.now = read, read.of(p.keyspace.onWall)
		if verb != store.Check {
			p.shard.changes(p.key)
		}
		if verb == store.Record || verb == store.Take && p.role == store.Always {
			continue // the limit is not asked
		}
		*p.answer = window.Result{}
		p.looked = p.limit.Look(p.answer, p.at.State(), p.now, p.hits)
		admitted = admitted && (p.answer.Allowed || p.role != store.Enforce)
	}
	if verb == store.Check {
		return
	}
	for i := range places {
		p := &places[i]
		switch {
		case verb == store.Record:
			s.count(p, store.Record, p.answer)
		case p.role == store.Always:
			s.count(p, always, p.answer)
		case !p.answer.Allowed || p.role == store.Enforce && !admitted:
		default:
			state := window.State(p.at.State())
			if next, ok := p.limit.TakeLooked(p.answer, state, p.hits, p.looked); !ok {
				s.count(p, store.Take, p.answer)
			} else if len(next) != len(state) {
				p.at.Resize(len(next))
			}
		}
	}
}
