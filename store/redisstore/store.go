package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] on one server, on a primary that Sentinels watch
// over, or on a cluster. Make one with [Open] or [New].
type Store struct {
	codec   *script.Codec
	servers *conn.Servers
	config  *Config
	owned   bool                  // the connections are the store's own
	clock   func() window.Instant // in tests only

	sliced sync.Map // by namespace: the number of calls in slices that are under way, an [atomic.Int64]
	turns  sync.Map // of callers whose scripts take long; see [remote.Turn]

	secrets remote.Secrets

	closed atomic.Bool
	life   sync.RWMutex   // held while closed is set, or a task is added
	tasks  sync.WaitGroup // background work after calls
}

// New returns a store on the server or the cluster that client is connected to. It
// is for programs that have a client already; others use [Open]. The store has no
// time-out of its own: a call waits as long as its context and the client allow.
// The caller closes the client. prefix is the start of the name of every key in Redis;
// empty means "weir".
func New(client rueidis.Client, prefix string) *Store {
	config := &Config{prefix: cmp.Or(prefix, defaultName)}
	codec := script.NewCodec(config.prefix)
	return newStore(&Store{codec: codec, servers: conn.ForClient(client, codec), config: config})
}

// Open returns a store on the servers that a URL names; see [Parse]. It returns
// when the first attempt to connect to each of them has ended, after 2 seconds at
// most. The store connects again by itself whenever it has to, outside the time of
// its callers. Servers that are unavailable now are not an error: calls return outages
// until they are back. Servers that refuse, because of a wrong password for
// example, are an error.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	c, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

// Open returns a store with the configuration c; see the function [Open].
func (c Config) Open(ctx context.Context) (*Store, error) {
	c = c.withDefaults()
	if err := c.validate().Err(); err != nil {
		return nil, err
	}
	codec := script.NewCodec(c.prefix)
	servers, err := conn.Open(ctx, c.wire(), codec)
	if err != nil {
		return nil, fmt.Errorf("store %v: %w", c, err)
	}
	return newStore(&Store{codec: codec, servers: servers, config: &c, owned: true}), nil
}

func newStore(s *Store) *Store {
	s.secrets.Agree, s.secrets.Replace, s.secrets.Background = s.agree, s.replaceSecret, s.background
	return s
}

// Within returns ctx with the end of a decision that begins now; an engine looks for this method
// (hook.Timed). Calls with that context
// return an outage error after the time-out. The caller calls the function when it is
// done.
func (s *Store) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return remote.Within(ctx, s.config.Timeout)
}

// ready returns an error when the store is closed or ctx is done. That the time of
// the decision is over is an outage, and not such an error.
func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil && !remote.TimedOut(ctx) {
		return err
	}
	return nil
}

// failed returns err as the caller sees it.
func (s *Store) failed(ctx context.Context, err error) error {
	if err == nil || script.IsRefusal(err) {
		return err
	}
	if ended := s.ready(ctx); ended != nil {
		return ended
	}
	var out *store.OutageError
	if errors.As(err, &out) {
		return out
	}
	return conn.Outage(err)
}

// background runs f in a goroutine that Close waits for. It returns false when
// the store is closed.
func (s *Store) background(f func()) bool {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed.Load() {
		return false
	}
	s.tasks.Go(f)
	return true
}

// Close implements [store.Store]. It first gives back the hits that the store
// still has to give back (see [Store.Do]), for a second at most, or the time-out if that is
// longer. A store of [Open] then closes its connections. Goroutines of the store have ended when Close
// returns.
func (s *Store) Close() error {
	s.life.Lock()
	closed := s.closed.Swap(true)
	s.life.Unlock()
	if !closed {
		s.tasks.Wait()
		s.servers.Close()
	}
	return nil
}

// Node holds the numbers of one server. The primary behind Sentinels is one Node,
// whichever server it is.
type Node = remote.Node

// Change is the start or the end of a time in which a node gets no calls.
type Change = remote.Change

// Nodes returns the numbers of the nodes in use, by address. On a cluster there
// are none until one of its nodes was reached and serves slots.
func (s *Store) Nodes() []Node {
	if !s.servers.Serve() {
		return nil
	}
	nodes := s.servers.Nodes()
	all := make([]Node, len(nodes))
	for i, n := range nodes {
		all[i] = n.Node()
	}
	return all
}
