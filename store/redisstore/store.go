// Package redisstore keeps counters in Redis or Valkey, for several processes
// that share them. All ops of a call are decided by one script in one step, on
// the server's clock; on a cluster in one step a slot, see [Store.Do].
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] on one server, on a primary that Sentinels watch
// over, or on a cluster.
type Store struct {
	servers servers
	program *program
	config  *Config
	dialer  *dialer               // nil when the client is the caller's
	clock   func() window.Instant // in tests only

	closed atomic.Bool
	shared atomic.Pointer[sharedTime]

	life  sync.RWMutex   // held while closed is set, or a task is added
	tasks sync.WaitGroup // what goes on after its call
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
// caller's, and so do time-outs: calls wait until their contexts are done.
// [Open] is for all else.
func New(client rueidis.Client, options ...Option) *Store {
	config := &Config{}
	s := &Store{servers: alone{newNode("redis", config, client)}, config: config, program: newProgram(defaultName)}
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

// Do implements [store.Store]. On a cluster the keys of a call can lie in
// several slots, and each slot decides for itself, all at the same time. When
// one of them denies a take, the others give back what they have counted.
// Meanwhile others may be denied because of it: a cluster is never too
// generous, but now and then too strict.
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		c.Err = s.call(ctx, c.Verb, c.Ops)
	}
	return nil
}

// call decides the ops of one call.
func (s *Store) call(ctx context.Context, verb store.Verb, ops []store.Op) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return err
	}
	if len(ops) > maxOps {
		return fmt.Errorf("weir: %d ops in one call: want at most %d", len(ops), maxOps)
	}
	within, cancel := s.within(ctx)
	defer cancel()
	r := request{program: s.program, verb: verb, ops: ops, which: upTo(len(ops)), options: callOptions{now: s.now()}}
	slot, one := 0, true
	if s.servers.sharded() {
		slot, one = s.slot(ops)
	}
	if !one {
		return s.failed(ctx, s.spread(within, r, s.groups(ops)))
	}
	_, err := s.servers.run(within, slot, r)
	return s.failed(ctx, err)
}

// maxOps is the most ops that a script can be told of.
const maxOps = 1<<16 - 1

func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// failed is the error that a caller sees.
func (s *Store) failed(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrRepeated) {
		return err
	}
	if ended := s.ready(ctx); ended != nil {
		return ended
	}
	var out *store.OutageError
	if errors.As(err, &out) {
		return out
	}
	return &store.OutageError{Err: err}
}

func (s *Store) now() window.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	state, now, err := s.peek(ctx, op)
	if err != nil {
		return window.Reading{}, err
	}
	return op.Limit.Read(state, now), nil
}

// peek returns the state of op's key in words, empty when there is none, and
// the server's instant.
func (s *Store) peek(ctx context.Context, op *store.Op) (state window.State, now window.Instant, err error) {
	err = s.ask(ctx, op, func(ctx context.Context, c rueidis.Client) (err error) {
		state, now, err = s.program.peek(ctx, c, op)
		return err
	})
	if s.clock != nil {
		now = s.clock()
	}
	return state, now, err
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	return s.ask(ctx, op, func(ctx context.Context, c rueidis.Client) error {
		return s.program.forget(ctx, c, op)
	})
}

// ask calls f with the client of the node that has op's key.
func (s *Store) ask(ctx context.Context, op *store.Op, f func(context.Context, rueidis.Client) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	within, cancel := s.within(ctx)
	defer cancel()
	slot := s.slotOf(op)
	_, err := s.servers.client(within, slot, func(c rueidis.Client) (window.Instant, error) {
		return 0, f(within, c)
	})
	return s.failed(ctx, err)
}

// background runs f in a goroutine that Close waits for, unless the store is
// closed.
func (s *Store) background(f func()) bool {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed.Load() {
		return false
	}
	s.tasks.Go(f)
	return true
}

// Close implements [store.Store]. It waits until what has to be given back has
// been, a second at most.
func (s *Store) Close() error {
	s.life.Lock()
	closed := s.closed.Swap(true)
	s.life.Unlock()
	if closed || s.dialer == nil {
		return nil
	}
	s.dialer.close() // what waits for a connection ends
	s.tasks.Wait()
	s.servers.close()
	return nil
}
