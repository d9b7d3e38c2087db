package memstore

import (
	"context"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store keeps counters in this process's memory. Make one with [New]. It is
// safe for concurrent use, starts no goroutine, and does not block beyond the
// locks of the shards that a call's keys are in.
type Store struct {
	clock  clock
	shards int // of each keyspace
	seeds  struct{ key, member maphash.Seed }

	closed    atomic.Bool
	full      atomic.Int64 // ops that were refused for want of room
	keyspaces keyspaces

	// scratch are states to work on that are too large for their shard's
	// scratch, one for each number of a shard; nil while in use.
	scratch []atomic.Pointer[window.State]
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Single = (*Store)(nil)
)

// Option changes what [New] makes.
type Option func(*Store)

// WithClock makes the store call tell for the time, once a call, instead of
// reading the machine's clocks. It is for replays and tests. Each call is dated
// with the instant that tell returned for it, so calls that run at once are in
// the order of their locks, not of their instants. Instants may go back: by
// less than an hour, each key still has what it counted; by more, the store
// stays at the latest instant for which it has reclaimed keys.
func WithClock(tell func() window.Instant) Option {
	return func(s *Store) {
		s.clock.given = true
		s.clock.tell = func() moment { now := tell(); return moment{now, now} }
	}
}

// WithShards sets how many locks share the keys of a space, from 1 to 256,
// rounded up to a power of two. The default is 16 for each processor that
// the program may use, and at least 32.
func WithShards(n int) Option {
	return func(s *Store) { s.shards = powerOfTwo(min(max(n, 1), 256)) }
}

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{shards: powerOfTwo(min(max(16*runtime.GOMAXPROCS(0), 32), 256))}
	s.clock.start = time.Now()
	s.seeds.key, s.seeds.member = maphash.MakeSeed(), maphash.MakeSeed()
	s.keyspaces.index.reset()
	for _, opt := range opts {
		opt(s)
	}
	s.scratch = make([]atomic.Pointer[window.State], s.shards)
	return s
}

// powerOfTwo returns the smallest power of two that is n or more.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	if err := s.ready(ctx); err != nil {
		return window.Reading{}, err
	}
	onWall := op.Limit.OnCalendar()
	m := s.clock.now(onWall)
	var state window.State
	_, sh, h := s.lookup(op)
	if sh != nil {
		sh.mu.Lock()
		m = sh.date(&s.clock, m, onWall)
		state = append(state, sh.table.Find(h).State()...)
		sh.mu.Unlock()
	}
	return op.Limit.Read(state, s.clock.floored(m).of(onWall)), nil
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ks, sh, h := s.lookup(op)
	if sh == nil {
		return nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if at := sh.table.Find(h); at.Known() {
		sh.table.Remove(at, h)
		ks.keys.Add(-1)
	}
	return nil
}

// ready returns the error of a call that is not decided.
func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Close drops all keys. Calls that have begun may still be answered; later ones
// return [store.ErrClosed].
func (s *Store) Close() error {
	s.closed.Store(true)
	s.keyspaces.close()
	return nil
}
