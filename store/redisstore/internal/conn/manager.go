package conn

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
)

const (
	// retryAtMost is the longest pause between two attempts to connect.
	retryAtMost = 500 * time.Millisecond

	// probeEvery is how often a node is asked for its time, so that a loss is
	// noticed without calls. It has probeFor to answer, or the time-out if that is
	// longer, but idleFor at most when no calls wait for it.
	probeEvery = time.Second
	probeFor   = 500 * time.Millisecond
	idleFor    = 900 * time.Millisecond
)

// manager makes the connections of a node, outside the time of any caller, and
// makes them again when they are lost. While the breaker is open it asks the node
// until it answers. It has one goroutine.
type manager struct {
	node *Node
	find func(context.Context) (addr string, err error) // nil: the node stays where it is

	ctx     context.Context // done when the node or the servers are closed
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	news    chan struct{} // has one when a connection was lost or the breaker has opened
	moved   chan struct{} // has one when find may return another address now
	tried   chan struct{} // closed when the first attempt has ended
	trouble atomic.Pointer[error]

	readOnly atomic.Bool  // the server has refused to write
	leaving  atomic.Bool  // leaveReplica runs
	at       atomic.Value // the address of the connections, a string

	known bool // the first attempt has ended; used only by the goroutine
}

// keep starts a manager for n. find returns the address to connect to; nil means that of n.
func (n *Node) keep(find func(context.Context) (string, error)) {
	m := &manager{
		node: n, find: find,
		news: make(chan struct{}, 1), moved: make(chan struct{}, 1), tried: make(chan struct{}),
	}
	m.at.Store(n.Addr)
	m.ctx, m.cancel = context.WithCancel(n.config.life)
	n.manager = m
	m.tasks.Go(m.run)
}

// signal leaves word in c, which has room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wake wakes the manager.
func (m *manager) wake() { signal(m.news) }

// moves wakes the manager when find may return another address.
func (m *manager) moves() { signal(m.moved) }

// connectionLost wakes the manager after the loss of a connection.
func (m *manager) connectionLost() {
	if m.node.client() == nil {
		m.node.Lost()
	}
	m.wake()
}

// unavailable returns the error of a call to a node without a connection.
func (m *manager) unavailable() error {
	if err := m.trouble.Load(); err != nil {
		if ReasonOf(*err) == remote.Late { // the attempt was: the call is not sent
			return fmt.Errorf("no connection: %w: %w", remote.ErrUnavailable, *err)
		}
		return fmt.Errorf("no connection: %w", *err)
	}
	select {
	case <-m.tried:
		return remote.ErrGone
	default:
		return remote.ErrUnavailable
	}
}

// refused returns the error of the last attempt to connect, if the server will
// refuse again.
func (m *manager) refused() error {
	if err := m.trouble.Load(); err != nil {
		return refusal(*err)
	}
	return nil
}

// await waits until the first attempt to connect has ended, the node is closed, or ctx is
// done.
func (m *manager) await(ctx context.Context) {
	select {
	case <-m.tried:
	case <-m.ctx.Done():
	case <-ctx.Done():
	}
}

func (m *manager) run() {
	probe := time.NewTicker(probeEvery)
	defer probe.Stop()
	pause := remote.BreakFor
	for m.ctx.Err() == nil {
		err := m.connect()
		if m.ctx.Err() != nil {
			return
		}
		m.node.Report(err)
		if !m.known {
			m.known = true
			close(m.tried)
		}
		switch {
		case err != nil && m.node.client() == nil:
			m.sleep(pause)
			pause = min(2*pause, retryAtMost)
			continue
		case m.node.Breaker.Open():
			m.revive()
			continue
		}
		pause = remote.BreakFor
		m.wait(probe.C, err != nil)
	}
}

// wait waits for something to do. When a connection is missing it waits for remote.BreakFor at
// most.
func (m *manager) wait(probe <-chan time.Time, missing bool) {
	var soon <-chan time.Time
	if missing {
		soon = time.After(remote.BreakFor)
	}
	select {
	case <-m.ctx.Done():
	case <-m.news:
	case <-m.moved:
		_ = m.follow()
	case <-soon:
	case <-probe:
		m.probe()
	}
}

// sleep ends early when find may return another address, and reports that.
func (m *manager) sleep(d time.Duration) (moved bool) {
	select {
	case <-m.ctx.Done():
	case <-m.moved:
		return true
	case <-time.After(d):
	}
	return false
}

// connect makes the connections that are missing, one after the other: all, if find returns
// another address than theirs. It returns an error when one of them cannot be made.
func (m *manager) connect() error {
	missing := m.collect()
	if len(missing) == 0 {
		return nil
	}
	if m.known {
		m.node.Report(nil) // before the attempt, which may take long
	}
	if m.find != nil {
		if err := m.follow(); err != nil {
			return m.failed(err)
		}
		missing = m.collect()
	}
	addr := m.at.Load().(string)
	for at, i := range missing {
		// The first one loads the programs, but for one that a distant node has besides others. The
		// server refuses the others for the same reason.
		if err := m.make(addr, i, at == 0 && !extra(i)); err != nil {
			return m.failed(err)
		}
	}
	return m.failed(nil)
}

// failed stores err for the calls that find no connection.
func (m *manager) failed(err error) error {
	if err == nil {
		m.trouble.Store(nil)
	} else {
		m.trouble.Store(&err)
	}
	return err
}

// collect removes the connections that are lost, and returns the numbers of those that
// are missing, which depend on how distant the node is.
func (m *manager) collect() (missing []int) {
	for i := range m.node.conns {
		c := m.node.conns[i].Load()
		if c != nil && c.lost.Load() {
			m.drop(i)
			c = nil
		}
		if c == nil && (!extra(i) || m.node.distant()) {
			missing = append(missing, i)
		}
	}
	return missing
}

// drop takes connection i away from the calls, and closes it.
func (m *manager) drop(i int) {
	if c := m.node.conns[i].Swap(nil); c != nil {
		m.tasks.Go(c.Close) // it may wait for a second
	}
}

// dropAll takes all connections away from the calls, and closes them.
func (m *manager) dropAll() {
	for i := range m.node.conns {
		m.drop(i)
	}
}

// make makes connection i to addr, and gets it ready for calls.
func (m *manager) make(addr string, i int, loads bool) error {
	c, err := m.node.config.connection(addr, m.connectionLost)
	if err != nil {
		return err
	}
	err = m.node.verify(m.ctx, c.Client)
	if err == nil && loads {
		err = m.node.load(m.ctx, c.Client)
	}
	if err != nil {
		c.Close()
		return err
	}
	m.node.conns[i].Store(c)
	if m.known {
		m.node.Report(nil) // calls go to the node from now on
	}
	return nil
}

// verify checks that the server of c is the right one, and asks it for its time.
func (n *Node) verify(ctx context.Context, c rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if n.config.Mode != Cluster {
		if err := mustFit(ctx, c, n.config.Mode); err != nil {
			return err
		}
	}
	return unready(n.askTime(ctx, c))
}

// loadTogether is how many programs a server gets at once: it decides nothing
// while it reads them.
const loadTogether = 8

// load makes sure that the server of c has all programs. Each part of them has
// connectTimeout: a server on a busy machine needs longer for all.
func (n *Node) load(ctx context.Context, c rueidis.Client) error {
	programs, late := n.codec.Programs(), script.Expired()
	commands := make([]rueidis.Completed, len(programs))
	for i, p := range programs {
		commands[i] = c.B().Evalsha().Sha1(p.SHA).Numkeys(0).Arg(late).Build()
	}
	var missing []rueidis.Completed
	for i, reply := range within(ctx, c, commands) {
		err := reply.Error()
		n.loaded.Store(programs[i], true) // or below
		if wordOf(err) == "NOSCRIPT" {
			missing = append(missing, c.B().Eval().Script(programs[i].Text).Numkeys(0).Arg(late).Build())
		} else if err := unready(err); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(missing, loadTogether) {
		for _, reply := range within(ctx, c, some) {
			if err := unready(reply.Error()); err != nil {
				return err
			}
		}
	}
	return nil
}

// within sends commands, and waits for the replies for connectTimeout at most.
func within(ctx context.Context, c rueidis.Client, commands []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.DoMulti(ctx, commands...)
}

// unready returns err if a server that answers with it does not take calls: not
// yet, or because a right is missing. Other errors are those of the calls, and of
// the checks of the server.
func unready(err error) error {
	if text, ok := said(err); ok {
		switch reasonSaid(text) {
		case remote.Loading, remote.Busy, remote.Refused:
		default:
			return nil
		}
	}
	return err
}

// mustFit returns an error for a server that is part of a cluster, or a Sentinel:
// with the wrong URL nearly every call would fail. The server that Sentinels name
// must be a primary, which it may not be yet.
func mustFit(ctx context.Context, c rueidis.Client, mode Mode) error {
	word := hello(ctx, c)
	if text := word("mode"); text == "cluster" || text == "sentinel" {
		return &modeError{text}
	}
	if role := word("role"); mode == Sentinel && role != "" && role != "master" {
		return errNotPrimary
	}
	return nil
}

// hello asks the server of c about itself, and returns what it says about a field: nothing if it is an old one that does not
// know the command, or is not there.
func hello(ctx context.Context, c rueidis.Client) (word func(name string) string) {
	said, _ := c.Do(ctx, c.B().Arbitrary("HELLO").Build()).AsMap()
	return func(name string) string {
		message := said[name]
		text, _ := message.ToString()
		return text
	}
}

// modeError is the error of a server of another kind than the URL names.
type modeError struct{ mode string }

func (e *modeError) Error() string {
	return fmt.Sprintf("the server runs as a %[1]s: want redis+%[1]s://", e.mode)
}

// probe asks the node for its time in the background. A node that does not
// answer is unavailable. A node that follows another one may have a new address.
func (m *manager) probe() {
	if m.find != nil {
		_ = m.follow()
	}
	l := m.node.client()
	if l == nil {
		return
	}
	if m.readOnly.Swap(false) && m.find == nil && !m.leaving.Swap(true) {
		m.tasks.Go(func() {
			m.leaveReplica()
			m.leaving.Store(false)
		})
	}
	ctx, cancel := context.WithTimeout(m.ctx, max(probeFor, m.node.config.Timeout))
	defer cancel()
	asked := make(chan struct{})
	m.tasks.Go(func() { m.endIdle(asked, cancel) })
	err := m.node.askTime(ctx, l.Client)
	close(asked)
	if !answers(err) && ctx.Err() != nil && m.ctx.Err() == nil {
		m.node.Breaker.Trip()
		m.node.Report(err) // before an answer closes it
	}
}

// leaveReplica drops the connections that lead to a replica, if a new one leads to a primary: the address is that of a
// load balancer, which may have sent some of them elsewhere than others, or a name that has moved.
func (m *manager) leaveReplica() {
	var replicas []int
	for i := range m.node.conns {
		if c := m.node.conns[i].Load(); c != nil && m.role(c) == "replica" {
			replicas = append(replicas, i)
		}
	}
	if len(replicas) == 0 {
		return
	}
	c, err := m.node.config.connection(m.at.Load().(string), func() {})
	if err != nil {
		return
	}
	defer c.Close()
	if m.role(c) != "master" {
		return
	}
	for _, i := range replicas {
		m.drop(i)
	}
	m.wake()
}

// role returns the role that the server of c has.
func (m *manager) role(c *connection) string {
	ctx, cancel := context.WithTimeout(m.ctx, connectTimeout)
	defer cancel()
	return hello(ctx, c.Client)("role")
}

// endIdle calls cancel after idleFor, or as soon after that as no calls wait for the node. It
// returns early when asked is closed.
func (m *manager) endIdle(asked <-chan struct{}, cancel context.CancelFunc) {
	for wait := idleFor; ; wait = remote.BreakFor {
		select {
		case <-asked:
			return
		case <-time.After(wait):
		}
		if m.node.Node().InFlight == 0 {
			cancel()
			return
		}
	}
}

// follow drops the connections when find returns another address. It returns the error of find.
func (m *manager) follow() error {
	ctx, cancel := context.WithTimeout(m.ctx, connectTimeout)
	defer cancel()
	addr, err := m.find(ctx)
	if err == nil && m.at.Swap(addr) != addr {
		m.dropAll()
	}
	return err
}

// revive asks the node until it answers within the time-out. When there is no
// answer for long, it drops the connections: their other end may be gone.
func (m *manager) revive() {
	n := m.node
	patience := max(time.Second, 2*n.config.Timeout)
	for late := 0; n.Breaker.Open() && m.ctx.Err() == nil; late++ {
		l := n.client()
		if l == nil {
			return
		}
		began := remote.Elapsed()
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		err := n.askTime(ctx, l.Client)
		over := ctx.Err() != nil
		cancel()
		switch {
		case answers(err) && remote.Elapsed()-began <= n.config.Timeout:
			n.Breaker.Answered()
			return
		case answers(err) && late == 0:
			continue // it stood still, and may have answered just now
		case over:
			m.dropAll()
			return
		}
		if m.sleep(remote.BreakFor) {
			_ = m.follow()
			return
		}
	}
}

// goes closes a node that has left its cluster.
func (n *Node) goes() {
	n.close()
	n.Leave()
}

// close ends the manager, all connections but those of a caller's client, and the
// flushes that are in flight.
func (n *Node) close() {
	if m := n.manager; m != nil {
		m.cancel()
		m.tasks.Wait()
		m.dropAll()
		m.tasks.Wait()
	}
	n.batcher.close()
	n.confirms.close()
}
