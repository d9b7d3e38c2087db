package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] in a database. Make one with [Open].
type Store struct {
	config *Config
	sql    statements
	clock  func() window.Instant // in tests only

	members    atomic.Pointer[[]byte] // the key of the hashes of members; nil: not known yet
	bare       atomic.Bool            // connections have no settings of their own
	unprepared atomic.Bool            // statements are sent with each call

	queue   queue
	link    link
	life    context.Context // of the lanes
	end     context.CancelFunc
	lanes   sync.WaitGroup
	closed  atomic.Bool
	sweeper sweeper
}

// Open returns a store in the database that a URL names; see [Parse]. It creates the store's
// tables if there are none. It returns when the first attempt to connect has ended, after 2 seconds at
// most. The store connects again by itself whenever it has to, outside the time of its
// callers. A server that is unavailable now is not an error: calls return outages until it is
// back. A server that refuses, because of a wrong password for example, is an error.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	c, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

// openFor is how long Open waits for the first attempt to connect.
const openFor = 2 * time.Second

// Open returns a store with the configuration c, which [Parse] has made; see the function [Open].
func (c Config) Open(ctx context.Context) (*Store, error) {
	if c.conn == nil {
		return nil, errors.New("store: no server: want pgstore.Parse(\"postgres://host/database\")")
	}
	s := newStore(&c)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("store %v: %w", c, err)
	}
	return s, nil
}

func newStore(c *Config) *Store {
	s := &Store{config: c, sql: statementsFor(c.prefix, c.settings())}
	s.sweeper = sweeper{margin: sweepMargin, blocks: sweepLeast}
	s.queue.wake = make(chan struct{}, c.connections)
	s.link.tried = make(chan struct{})
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// open starts the lanes and waits for the first attempt to connect.
func (s *Store) open(ctx context.Context) error {
	for i := range s.config.connections {
		l := &lane{s: s, first: i == 0}
		s.lanes.Go(l.run)
	}
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	select {
	case <-s.link.tried:
		return s.link.refused()
	case <-ctx.Done():
		return nil
	}
}

// timeoutKey is the key of contexts with another time-out than the store's.
type timeoutKey struct{}

// errTimeout is the cause of the end of a context that a decision's time-out has ended.
var errTimeout = errors.New("no answer in time")

// WithTimeout returns ctx with a time-out for the decisions in it, instead of [Config].Timeout.
func WithTimeout(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// decisionKey is the key of contexts that end with a decision.
type decisionKey struct{}

// Within returns ctx with the end of a decision that begins now; an engine looks for this
// method (hook.Timed). Calls with that context return an outage error after the time-out. The
// caller calls the function when it is done.
func (s *Store) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Value(decisionKey{}) != nil {
		return ctx, func() {}
	}
	timeout := s.config.Timeout
	if other, ok := ctx.Value(timeoutKey{}).(time.Duration); ok {
		timeout = other
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	return context.WithValue(ctx, decisionKey{}, true), cancel
}

// timedOut reports whether ctx is done because the time of a decision is over.
func timedOut(ctx context.Context) bool { return context.Cause(ctx) == errTimeout }

// ready returns an error when the store is closed or ctx is done. That the time of the
// decision is over is an outage, and not such an error.
func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil && !timedOut(ctx) {
		return err
	}
	return nil
}

// maxSlice is the most calls of a batch that are decided in one transaction.
const maxSlice = 128

// Do implements [store.Store]. It decides the calls of a batch in slices of at most 128, one
// after the other, each in one transaction with a time-out of its own. The first slice that
// ends with its time-out ends the batch: the later ones return outage errors at once.
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for slice := range slices.Chunk(calls, maxSlice) {
		ctx = s.slice(ctx, slice)
	}
	return nil
}

// slice decides calls in one transaction. When the time-out is over it returns a context that
// has ended: the calls after them are not sent.
func (s *Store) slice(ctx context.Context, calls []store.Call) context.Context {
	within, cancel := s.Within(ctx)
	defer cancel()
	r := requests.Get().(*request)
	if !r.load(calls) {
		r.free()
		return ctx
	}
	err := s.decide(within, r)
	for i := range calls {
		switch c := &calls[i]; {
		case err != nil:
			c.Err = s.failed(ctx, err)
		default:
			r.store(c, i)
		}
	}
	if err == nil || !r.left() {
		r.free()
	}
	if err != nil && timedOut(within) && !timedOut(ctx) {
		ended, cancel := context.WithTimeoutCause(ctx, 0, errTimeout)
		cancel()
		return context.WithValue(ended, decisionKey{}, true)
	}
	return ctx
}

// failed returns err as the caller sees it.
func (s *Store) failed(ctx context.Context, err error) error {
	if ended := s.ready(ctx); ended != nil {
		return ended
	}
	var out *store.OutageError
	if errors.As(err, &out) {
		return out
	}
	return outage(err, false)
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (reading window.Reading, err error) {
	err = s.alone(ctx, op, store.Check, func(state window.State, now window.Instant) window.State {
		reading = op.Limit.Read(state, now)
		return state
	})
	return reading, err
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	return s.alone(ctx, op, store.Refund, func(window.State, window.Instant) window.State { return nil })
}

// alone calls change with the state of op's key, in the place of a call with a verb. The state that it returns is kept, unless
// the verb is Check.
func (s *Store) alone(ctx context.Context, op *store.Op, v store.Verb, change func(window.State, window.Instant) window.State) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := s.Within(ctx)
	defer cancel()
	r := &request{done: make(chan error, 1)}
	r.load([]store.Call{{Verb: v, Ops: []store.Op{*op}}})
	r.change = change
	err := s.decide(within, r)
	if err == nil {
		err = r.calls[0].Err
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// Close implements [store.Store]. The goroutines of the store have ended when it returns.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.end()
	s.lanes.Wait()
	s.queue.drain(store.ErrClosed)
	return nil
}
