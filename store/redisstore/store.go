// Package redisstore keeps counters in Redis or Valkey, for several processes
// that share them. All ops of a call are decided by one script in one step, on
// the server's clock.
package redisstore

import (
	"context"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] on one server.
type Store struct {
	client  rueidis.Client
	program *program
	clock   func() window.Instant // in tests only
	closed  atomic.Bool
}

// Option changes a store.
type Option func(*Store)

// WithPrefix makes the names of all keys begin with prefix; default "weir".
func WithPrefix(prefix string) Option {
	return func(s *Store) { s.program.names.prefix = prefix }
}

// WithClock makes the store use this clock and not the server's. It is for
// tests; keys then stay an hour longer.
func WithClock(now func() window.Instant) Option {
	return func(s *Store) { s.clock = now }
}

// New makes a store on the server that client talks to. The client stays the
// caller's.
func New(client rueidis.Client, options ...Option) *Store {
	s := &Store{client: client, program: newProgram("weir")}
	for _, o := range options {
		o(s)
	}
	return s
}

// few is how many ops a call can have without a list on the heap.
const few = 8

var firstFew = [few]int{0, 1, 2, 3, 4, 5, 6, 7}

// upTo is the numbers below n.
func upTo(n int) []int {
	if n <= few {
		return firstFew[:n]
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, verb store.Verb, ops []store.Op) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return err
	}
	_, err := s.program.run(ctx, s.client, verb, ops, upTo(len(ops)), callOptions{now: s.now()})
	return s.failed(ctx, err)
}

func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// failed is the error that a caller sees.
func (s *Store) failed(ctx context.Context, err error) error {
	switch {
	case err == nil, err == store.ErrRepeated:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &store.OutageError{Err: err}
}

func (s *Store) now() window.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// Peek implements [store.Store].
func (s *Store) Peek(ctx context.Context, op *store.Op) (window.State, window.Instant, error) {
	if err := s.ready(ctx); err != nil {
		return nil, 0, err
	}
	state, now, err := s.program.peek(ctx, s.client, op)
	if s.clock != nil {
		now = s.clock()
	}
	return state, now, s.failed(ctx, err)
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.failed(ctx, s.program.forget(ctx, s.client, op))
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}
