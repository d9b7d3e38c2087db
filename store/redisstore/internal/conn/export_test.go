package conn

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// ServerClock is a serverClock.
type ServerClock struct{ c serverClock }

func (c *ServerClock) Learn(server window.Instant, now time.Duration) { c.c.learn(server, now) }
func (c *ServerClock) At(now time.Duration) window.Instant            { return c.c.at(now) }

// ReasonSaid is reasonSaid.
var ReasonSaid = reasonSaid

// SuccessorIn is successorIn.
var SuccessorIn = successorIn

// View is what a Sentinel names.
type View struct {
	Epoch   int64
	Primary string
}

// Newest is newest.
func Newest(views ...View) string {
	all := make([]*view, len(views))
	for i, v := range views {
		all[i] = &view{primary: v.Primary, epoch: v.Epoch}
	}
	return newest(all)
}

// Sentinels are sentinels without connections to their primary.
type Sentinels struct{ s *sentinels }

// NewSentinels returns the Sentinels of the primary of that name at the addresses.
func NewSentinels(t testing.TB, name string, addrs ...string) Sentinels {
	config := &Config{Addrs: addrs, Primary: name, life: t.Context()}
	n := newNode("primary", config, nil)
	n.manager = &manager{moved: make(chan struct{}, 1)}
	s := &sentinels{config: config, node: n}
	t.Cleanup(s.close)
	return Sentinels{s}
}

func (s Sentinels) Primary(ctx context.Context) (string, error) { return s.s.primary(ctx) }

// Addrs returns the addresses of those that are asked.
func (s Sentinels) Addrs() (addrs []string) {
	for _, one := range s.s.known {
		addrs = append(addrs, one.addr)
	}
	return addrs
}

// RoundTrips is a roundTrips.
type RoundTrips struct{ t roundTrips }

func (t *RoundTrips) Learn(trip, now time.Duration) time.Duration {
	t.t.learn(trip, now)
	return t.t.shortest()
}

// unused is a client that is only closed.
type unused struct{ rueidis.Client }

// Close implements [rueidis.Client].
func (unused) Close() {}

// Manager is the connection manager of a node that has a connection.
type Manager struct{ m *manager }

// NewManager returns a manager that calls changed.
func NewManager(changed func(remote.Change)) *Manager {
	n := newNode("node:1", &Config{Changed: changed}, nil)
	n.conns[0].Store(&connection{Client: unused{}})
	n.manager = &manager{node: n, news: make(chan struct{}, 1), ctx: context.Background()}
	return &Manager{n.manager}
}

func (m *Manager) Trip()     { m.m.node.Breaker.Trip() }
func (m *Manager) Answered() { m.m.node.Breaker.Answered() }
func (m *Manager) Report()   { m.m.node.Report(nil) }
func (m *Manager) Connect()  { m.m.node.conns[0].Store(&connection{Client: unused{}}) }
func (m *Manager) Lose() {
	m.m.node.conns[0].Load().lost.Store(true)
	m.m.connectionLost()
}

// Following is a node that follows a primary.
type Following struct{ n *Node }

// Follow returns a node that is connected to the server that find names.
func Follow(t testing.TB, find func() string) Following {
	config := &Config{Changed: func(remote.Change) {}, Timeout: time.Minute, ClientName: "weir"}
	config.life = t.Context()
	n := newNode("primary", config, script.NewCodec("weir"))
	n.keep(func(context.Context) (string, error) { return find(), nil })
	t.Cleanup(n.close)
	return Following{n}
}

// Connected reports whether the node has its second connection.
func (f Following) Connected() bool { return f.n.conns[1].Load() != nil }

// Lose makes the second connection of the node a lost one.
func (f Following) Lose() {
	f.n.conns[1].Load().lost.Store(true)
	f.n.manager.wake()
}

// NewNode returns a node whose calls go to client. It has no time-out. It knows the
// server's clock.
func NewNode(client rueidis.Client) *Node {
	n := newNode("node:1", &Config{}, script.NewCodec("weir"))
	n.conns[0].Store(&connection{Client: client})
	n.clock.learn(1e15, 0)
	return n
}

// Confirm waits for a replica on the connection of n, which was lost if lost is set.
func (n *Node) Confirm(ctx context.Context, lost bool) error {
	l := n.conns[0].Load()
	l.lost.Store(lost)
	n.config.WaitReplicas = 1
	return n.wait(ctx, l, nil)
}

// Run makes the node decide a step.
func (n *Node) Run(ctx context.Context, s script.Call) error {
	_, err := (&Servers{single: n, calls: sync.Pool{New: newPending}}).Run(ctx, 0, s)
	return err
}

// NodeAfterClose makes a node of a cluster that is closed, as a redirected call that is in
// flight during the Close does. It returns a function that waits for the node's goroutine, and
// one that ends it.
func NodeAfterClose() (wait func(), end context.CancelFunc) {
	s := &Servers{config: &Config{Changed: func(remote.Change) {}}, byAddr: map[string]*Node{}}
	s.config.life, s.close = context.WithCancel(context.Background())
	s.Close()
	m := s.node("127.0.0.1:1").manager
	m.await(context.Background())
	return m.tasks.Wait, m.cancel
}
