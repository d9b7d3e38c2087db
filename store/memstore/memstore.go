package memstore

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] in this process's memory. Make one with [New]; the zero
// Store is not usable. It is safe for concurrent use and starts no goroutine. A
// call waits for nothing but the locks of its keys' stripes, which all spaces share.
type Store struct {
	clock   clock
	seeds   struct{ key, member maphash.Seed }
	secrets atomic.Pointer[seal.Secrets]

	memory    memory
	refusal   atomic.Pointer[error] // of every call; nil: calls are decided
	full      atomic.Int64          // ops that were refused because the store was full
	keyspaces keyspaces

	slots sync.Pool // of *[]opSlot, whose slots are cleared; or empty

	largeRead sync.Mutex // held while a state of more than largeState words is read, of which a copy is made
}

// largeState is the size, in words, of a state of which only one copy is made at a time: many readers would take more
// memory than all counters.
const largeState = 4 << 10

var _ store.Store = (*Store)(nil)

// Option is an option of [New].
type Option func(*Store)

// WithClock makes the store call now for the time, once for each call, instead of
// reading the machine's clocks. It is for replays and tests. now must be safe for
// concurrent use. Calls that run at the same time are decided in the order in
// which they lock, which need not be the order of their instants.
//
// Instants may go back. The store keeps each key for an hour after it has expired,
// so going back by up to an hour frees no quota. The time never goes back to
// before the instant up to which expired keys were reclaimed: earlier instants
// count as that one. Default: the machine's clocks.
func WithClock(now func() window.Instant) Option {
	return func(s *Store) {
		s.clock.custom = true
		s.clock.source = func() moment { at := now(); return moment{at, at} }
	}
}

// WithShards sets the number of shards of each space, and of locks for all of them. It is
// rounded up to a power of two and bounded to 1 to 256. Default: 16 for each
// processor that the program may use ([runtime.GOMAXPROCS]), from 32 to 256.
func WithShards(n int) Option {
	return func(s *Store) { s.keyspaces.stripes = make(stripes, powerOfTwo(min(max(n, 1), 256))) }
}

// WithMaxBytes bounds the memory of all keys and their states to n bytes. Once
// nine tenths are taken, a call with a new key returns an outage error whose cause is
// [store.ErrFull]; once all is taken, so does a call that makes the state of a
// known key larger. No key is dropped for another one. Calls that run at the same
// time can exceed the bound by a few hundred kilobytes each. Default: no bound.
func WithMaxBytes(n int64) Option { return func(s *Store) { s.memory.most.Store(n) } }

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{}
	s.clock.begin(time.Now())
	s.seeds.key, s.seeds.member = maphash.MakeSeed(), maphash.MakeSeed()
	s.secrets.Store(new(seal.Secrets).Rotated(newSecret(), 0))
	s.keyspaces.index.reset()
	for _, opt := range opts {
		opt(s)
	}
	if s.keyspaces.stripes == nil {
		WithShards(16 * max(runtime.GOMAXPROCS(0), 2))(s)
	}
	if s.keyspaces.journal != nil && len(s.keyspaces.stripes) < leastShards {
		WithShards(leastShards)(s)
	}
	return s
}

// Secrets returns the secrets under which receipts are valid. The first one, for new
// receipts, is random, and lives as long as the store or until [Store.RotateSecret].
func (s *Store) Secrets(bool, ...[16]byte) [][16]byte {
	return s.secrets.Load().Valid(window.At(time.Now()))
}

// RotateSecret makes a new secret for receipts. Receipts of before are valid for keep,
// unless the secret is rotated once more.
func (s *Store) RotateSecret(_ context.Context, keep time.Duration) error {
	for next, until := newSecret(), window.At(time.Now().Add(keep)); ; {
		if old := s.secrets.Load(); s.secrets.CompareAndSwap(old, old.Rotated(next, until)) {
			return nil
		}
	}
}

func newSecret() (s seal.Secret) {
	_, _ = rand.Read(s[:]) // which never fails
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
		sh.stripe.mu.Lock()
		found := sh.table.Find(h).State()
		if len(found) > largeState {
			sh.stripe.mu.Unlock()
			s.largeRead.Lock()
			defer s.largeRead.Unlock()
			sh.stripe.mu.Lock()
			found = sh.table.Find(h).State()
		}
		m = sh.stripe.date(&s.clock, m, onWall)
		state = append(state, found...)
		sh.stripe.mu.Unlock()
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
	sh.stripe.mu.Lock()
	defer sh.stripe.mu.Unlock()
	if err := s.refused(); err != nil {
		return err
	}
	if at := sh.table.Find(h); at.Known() {
		sh.dropAnswer(h)
		sh.mark(h)
		sh.table.Remove(at, h)
		sh.names.forget(h)
		sh.account(&s.memory)
		ks.keys.Add(-1)
	}
	return nil
}

// ready returns the error of a call that is not decided.
func (s *Store) ready(ctx context.Context) error {
	if err := s.refused(); err != nil {
		return err
	}
	return ctx.Err()
}

// refused returns the error of every call, or nil. Calls that change something ask again once they have
// locked their stripes; see Refuse.
func (s *Store) refused() error {
	if refusal := s.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// Refuse implements [journal.Journal]. It waits for the calls that have locked a stripe before.
func (s journaled) Refuse(err error) {
	var next *error
	if err != nil {
		next = &err
	}
	for {
		was := s.refusal.Load()
		if was != nil && errors.Is(*was, store.ErrClosed) || s.refusal.CompareAndSwap(was, next) {
			break
		}
	}
	for i := range s.keyspaces.stripes {
		if st := s.keyspaces.stripes[i].Load(); st != nil {
			st.lock()
			st.mu.Unlock()
		}
	}
}

// Close implements [store.Store]. It drops all keys. Calls that have begun may
// still be answered.
func (s *Store) Close() error {
	err := store.ErrClosed
	s.refusal.Store(&err)
	s.keyspaces.close()
	return nil
}
