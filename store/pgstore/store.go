package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
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
	dropped    atomic.Bool            // a table is missing, and the next connection makes it again
	following  atomic.Bool            // follow looks for another server
	writable   atomic.Int64           // when it last began to connect to one that accepts writes, as remote.Elapsed

	server  remote.Server
	link    link
	queue   queue
	tasks   chan func(context.Context, *pgconn.PgConn) // for a lane, between transactions
	turns   chan struct{}                              // has one for each task that a lane runs
	secrets remote.Secrets
	sweeper sweeper

	life    context.Context // of the lanes
	end     context.CancelFunc
	running sync.WaitGroup // lanes and other goroutines
	closing sync.RWMutex   // held while closed is set, or a goroutine begins
	closed  atomic.Bool
}

// Open returns a store in the database that a URL names; see [Parse]. It creates the store's tables if there are
// none. It returns when the first attempt to connect has ended, or after 2 seconds, or after the time-out of a
// decision if that is longer. The store connects again by itself whenever it has to, outside the time of its callers.
// A server that is unavailable now is not an error: calls return outages until it is back. A server that refuses,
// because of a wrong password for example, is an error.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	c, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

// openFor is how long Open waits for the first attempt to connect, at least.
const openFor = 2 * time.Second

// Open returns a store with the configuration c, which [Parse] has made; see the function [Open].
func (c Config) Open(ctx context.Context) (*Store, error) {
	if c.conn == nil {
		return nil, errors.New("store: no server: want pgstore.Parse(\"postgres://host/database\")")
	}
	s := newStore(&c)
	if err := s.open(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("store %v: %w", c, err)
	}
	return s, nil
}

func newStore(c *Config) *Store {
	s := &Store{config: c, sql: statementsFor(c.prefix, c.settings())}
	s.sweeper = sweeper{margin: sweepMargin, blocks: sweepLeast}
	s.link.tried = make(chan struct{})
	s.tasks, s.turns = make(chan func(context.Context, *pgconn.PgConn)), make(chan struct{}, max(1, c.connections/2))
	s.server.Addr, s.server.Changed = c.Servers(), c.Changed
	s.server.Connected = func() bool { return s.link.unavailable() == nil }
	s.server.Outage = func(err error) *store.OutageError { return outage(err, true) }
	s.secrets.Agree, s.secrets.Replace, s.secrets.Background = s.agree, s.replaceSecret, s.background
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// open starts the lanes and waits for the first attempt to connect.
func (s *Store) open(ctx context.Context) error {
	for i := range s.config.connections {
		l := &lane{s: s, first: i == 0, wake: make(chan struct{}, 1)}
		s.running.Go(l.run)
	}
	ctx, cancel := context.WithTimeout(ctx, max(openFor, s.config.Timeout))
	defer cancel()
	select {
	case <-s.link.tried:
		return s.link.refused()
	case <-ctx.Done():
		return nil
	}
}

// errTimeout is the error of calls whose decision has no more time.
var errTimeout = errors.New("no answer in time")

// Within returns ctx with the end of a decision that begins now; an engine looks for this
// method (hook.Timed). Calls with that context return an outage error after the time-out. The
// caller calls the function when it is done.
func (s *Store) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return remote.Within(ctx, s.config.Timeout)
}

// endOf returns why ctx is done.
func endOf(ctx context.Context) error {
	if remote.TimedOut(ctx) {
		return errTimeout
	}
	return ctx.Err()
}

// ready returns an error when the store is closed or ctx is done. That the time of the
// decision is over is an outage, and not such an error.
func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil && !remote.TimedOut(ctx) {
		return err
	}
	return nil
}

// maxSlice is the most calls of a batch that are decided in one transaction.
const maxSlice = 128

// Do implements [store.Store]. It decides the calls of a batch in slices of at most 128, or a quarter of in_flight if
// that is less, one after the other, each in one transaction with a time-out of its own. The first slice that ends
// with its time-out ends the batch: the later ones return outage errors at once.
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for slice := range slices.Chunk(calls, min(maxSlice, max(s.config.inFlight/4, 1))) {
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
	if err == nil || r.phase.Load() != abandoned {
		r.free()
	}
	if err != nil && remote.TimedOut(within) {
		return within
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
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	limit, reading := op.Limit, window.Reading{} // a lane may write it after the caller has left with an error
	if err := s.alone(ctx, op, store.Check, func(state window.State, now window.Instant) window.State {
		reading = limit.Read(state, now)
		return state
	}); err != nil {
		return window.Reading{}, err
	}
	return reading, nil
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	return s.alone(ctx, op, store.Refund, func(window.State, window.Instant) window.State { return nil })
}

// alone calls change with the state of op's key, in the place of a call with a verb. The state that it returns is
// kept, unless the verb is Check. The caller may leave while change runs: what that refers to must not be used after
// an error.
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

// background runs f in a goroutine that Close waits for. It returns false when the store is
// closed.
func (s *Store) background(f func()) bool {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed.Load() {
		return false
	}
	s.running.Go(f)
	return true
}

// Close implements [store.Store]. The goroutines of the store have ended when it returns.
func (s *Store) Close() error {
	s.closing.Lock()
	s.closed.Store(true)
	s.closing.Unlock()
	s.end()
	s.running.Wait()
	s.drain(store.ErrClosed)
	return nil
}
