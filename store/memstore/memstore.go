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
	shards int // of each table
	seeds  struct{ key, member maphash.Seed }

	closed atomic.Bool
	full   atomic.Int64
	tables tables

	// scratch are states to work on that are too large for their shard's
	// scratch, one for each number of a shard; nil while it is used.
	scratch []atomic.Pointer[window.State]
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Single = (*Store)(nil)
)

// Option changes what [New] makes.
type Option func(*Store)

// WithClock makes the store ask tell for the time, once a call, instead of the
// machine's clocks. It is for replays and tests. Instants may go back: by less
// than an hour, each key still has what it counted; by more, the store stays
// at the latest instant for which it has reclaimed keys.
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

// New makes an empty store.
func New(opts ...Option) *Store {
	s := &Store{shards: powerOfTwo(min(max(16*runtime.GOMAXPROCS(0), 32), 256))}
	s.clock.start = time.Now()
	s.seeds.key, s.seeds.member = maphash.MakeSeed(), maphash.MakeSeed()
	s.tables.index.reset()
	for _, opt := range opts {
		opt(s)
	}
	s.scratch = make([]atomic.Pointer[window.State], s.shards)
	return s
}

// powerOfTwo is the smallest power of two that is n or more.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	var state window.State
	err := s.visit(ctx, op, func(_ *table, sh *shard, f fingerprint) {
		if g, at, ok := sh.find(f); ok {
			state = append(state, g.stateOf(at)...)
		}
	})
	if err != nil {
		return window.Reading{}, err
	}
	return op.Limit.Read(state, s.clock.read(true).of(op.Limit.OnCalendar())), nil
}

// Forget drops the state of op's key.
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	return s.visit(ctx, op, func(t *table, sh *shard, f fingerprint) {
		if g, _, ok := sh.find(f); ok {
			sh.remove(g, f)
			t.keys.Add(-1)
		}
	})
}

// visit calls see under the lock of the shard where op's key would be, if
// there is one.
func (s *Store) visit(ctx context.Context, op *store.Op, see func(*table, *shard, fingerprint)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	t := s.tables.existing(op.Space)
	if t == nil {
		return nil
	}
	f := s.fingerprint(op.Key)
	if sh := t.shards[f.shard(s.shards)].Load(); sh != nil {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		see(t, sh, f)
	}
	return nil
}

func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Close drops all keys. Calls that have begun may still be answered; later ones
// answer [store.ErrClosed].
func (s *Store) Close() error {
	s.closed.Store(true)
	ts := &s.tables
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.order {
		t.dead.Store(true)
		for i := range t.shards { // calls may still hold the table
			t.shards[i].Store(nil)
		}
	}
	ts.closed, ts.order = true, nil
	ts.index.reset()
	return nil
}
