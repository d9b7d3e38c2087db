package conn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Servers are where a store keeps its keys: one node for all of them, or a cluster whose
// nodes have slots. They are safe for concurrent use.
//
// A cluster is asked who serves which slots when a node answers that a slot has moved, when
// one is unavailable, and every refreshEvery.
type Servers struct {
	config    *Config
	codec     *script.Codec
	single    *Node      // serves all keys; nil: a cluster
	sentinels *sentinels // nil without Sentinels
	sharded   bool
	calls     sync.Pool // of *Pending

	close context.CancelFunc // of config.life
	tasks sync.WaitGroup

	// Of a cluster.
	slots   []atomic.Pointer[Node]
	changed chan struct{} // has one when the slots may have changed: watch asks for them soon
	down    sync.Map      // the nodes that have answered CLUSTERDOWN since the last refresh
	mu      sync.Mutex
	byAddr  map[string]*Node // guarded by mu
	seeds   []string         // guarded by mu; addresses of nodes, replicas too
}

const (
	// openTime is how long Open waits for the first attempts to connect.
	openTime = 2 * time.Second

	// refreshEvery is how often the store asks a cluster who serves which slots, even
	// when nothing seems to have changed.
	refreshEvery = 5 * time.Second

	// keepAsked is how long the store keeps a node that serves nothing yet, for the
	// slots that are on their way to it.
	keepAsked = time.Minute

	// maxRedirects is how often a call is sent on: to where a slot has moved, and
	// from there on while it is still moving.
	maxRedirects = 5
)

var (
	errNoNode  = errors.New("no node of the cluster serves the slot")
	errNoSlots = errors.New("no node of the cluster has answered who serves the slots")
)

// ForClient returns the servers that the caller's client is connected to. There is
// no time-out, no breaker, and no limit of calls in flight.
func ForClient(client rueidis.Client, codec *script.Codec) *Servers {
	n := newNode("redis", &Config{}, codec)
	n.conns[0].Store(&connection{Client: client})
	n.clustered = client.Mode() == rueidis.ClientModeCluster
	n.batcher.life, n.batcher.stop = context.WithCancel(context.Background())
	return &Servers{single: n, sharded: n.clustered, close: func() {}, calls: sync.Pool{New: newPending}}
}

// Open connects to servers. It returns when the first attempt to connect to each
// of them has ended, or after openTime; attempts continue in the background. Servers
// that are unavailable now are no error; the error is that of a server which
// refuses.
func Open(ctx context.Context, config *Config, codec *script.Codec) (*Servers, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	s := &Servers{config: config, codec: codec, calls: sync.Pool{New: newPending}}
	config.life, s.close = context.WithCancel(context.Background())
	if err := s.connect(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect makes the nodes. It returns the error of a server that refuses.
func (s *Servers) connect(ctx context.Context) error {
	if s.config.Mode == Cluster {
		return s.connectCluster(ctx)
	}
	n := newNode(s.config.Addrs[0], s.config, s.codec)
	if s.config.Mode == Sentinel {
		n.Addr = "primary " + s.config.Primary
		s.sentinels = &sentinels{config: s.config, node: n}
		n.keep(s.sentinels.primary)
	} else {
		n.keep(nil)
	}
	s.single = n
	n.manager.await(ctx)
	return n.manager.refused()
}

// connectCluster connects to the nodes that the configuration names, and then to
// those that these name.
func (s *Servers) connectCluster(ctx context.Context) error {
	s.sharded, s.seeds = true, s.config.Addrs
	s.slots = make([]atomic.Pointer[Node], slotCount)
	s.changed, s.byAddr = make(chan struct{}, 1), map[string]*Node{}
	var named []*Node
	for _, addr := range s.config.Addrs {
		named = append(named, s.node(addr))
	}
	for _, n := range named {
		n.manager.await(ctx)
	}
	err := refusal(s.refresh(ctx))
	s.tasks.Go(s.watch)
	if err != nil || slices.ContainsFunc(named, func(n *Node) bool { return n.client() != nil }) {
		return err
	}
	for _, n := range named {
		if err := n.manager.refused(); err != nil {
			return fmt.Errorf("%s: %w", n.Addr, err)
		}
	}
	return nil
}

// Close ends all connections, but for those of a caller's client, and waits for
// flushes that are in flight.
func (s *Servers) Close() {
	// A node that becomes known only now is not connected: life has ended. Closing one
	// that stands still takes a second, as does asking it for the slots.
	s.close()
	var closing sync.WaitGroup
	closing.Go(s.tasks.Wait)
	for _, n := range s.Nodes() {
		closing.Go(n.close)
	}
	closing.Wait()
	if s.sentinels != nil {
		s.sentinels.close()
	}
}

// Sharded reports whether there are slots. Where there are none, one node
// decides all ops of a call.
func (s *Servers) Sharded() bool { return s.sharded }

// Nodes returns the nodes in use, by address.
func (s *Servers) Nodes() []*Node {
	if s.single != nil {
		return []*Node{s.single}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.byAddr), func(a, b *Node) int { return strings.Compare(a.Addr, b.Addr) })
}

// Serve reports whether there is a node for any key. The nodes of a cluster that is being made have no slots yet.
func (s *Servers) Serve() bool {
	for i := range s.slots {
		if s.slots[i].Load() != nil {
			return true
		}
	}
	return s.single != nil
}

// Primaries returns the nodes that serve keys, by address, and one slot of each.
func (s *Servers) Primaries() (nodes []*Node, slot map[*Node]int) {
	slot = map[*Node]int{}
	for i := range s.slots {
		slot[s.slots[i].Load()] = i
	}
	for _, n := range s.Nodes() {
		if _, serves := slot[n]; serves || n == s.single {
			nodes = append(nodes, n)
		}
	}
	return nodes, slot
}

// serving returns the node that serves slot. If there is none it returns nil, and the
// cluster is asked soon.
func (s *Servers) serving(slot int) *Node {
	if s.single != nil {
		return s.single
	}
	n := s.slots[slot].Load()
	if n == nil {
		signal(s.changed)
	}
	return n
}

// Ready reports whether the node that serves slot may get a call now.
func (s *Servers) Ready(slot int) bool {
	n := s.serving(slot)
	if n != nil && n.Unavailable() && s.single == nil {
		signal(s.changed)
	}
	return n != nil && !n.Unavailable()
}

// Run makes the node that serves slot decide a call, and returns the instant at which it did.
func (s *Servers) Run(ctx context.Context, slot int, call script.Call) (window.Instant, error) {
	c := s.calls.Get().(*Pending)
	c.Call, c.Slot, c.Err = call, slot, errNoNode
	to := onward{node: s.serving(slot)}
	for sent := 0; to.node != nil; sent++ {
		c.asking = to.asking
		if to.node.decide(ctx, c.self[:]); c.Err == nil {
			break
		}
		if to = s.redirected(ctx, slot, to.node, c.Err); sent == maxRedirects || to.later && !pause(ctx, sent) {
			break
		}
	}
	at, err := c.At, c.Err
	if !c.abandoned {
		*c = Pending{done: c.done, timer: c.timer, self: c.self}
		s.calls.Put(c)
	}
	return at, err
}

// Client calls f with the client of the node that serves slot, unless the node is
// unavailable or busy.
func (s *Servers) Client(ctx context.Context, slot int, f func(rueidis.Client) error) error {
	err, to := errNoNode, onward{node: s.serving(slot)}
	for sent := 0; to.node != nil; sent++ {
		n := to.node
		if err = n.lend(ctx, to.asking, f); err != nil {
			err = n.countOutage(err)
		}
		if to = s.redirected(ctx, slot, n, err); sent == maxRedirects || to.later && !pause(ctx, sent) {
			break
		}
	}
	return err
}

// others stands for the namespace of calls that decide nothing, such as reads. No namespace has this name.
const others = "\x00"

// lend calls f with the client of n.
func (n *Node) lend(ctx context.Context, asking bool, f func(rueidis.Client) error) error {
	began, err := n.admit(ctx, others, 1)
	if err != nil {
		return err
	}
	if l := n.pick(); l == nil {
		err = remote.ErrGone
	} else if asking {
		err = f(askingClient{l.Client})
	} else {
		err = f(l.Client)
	}
	n.finish(ctx, others, 1, began, answers(err))
	return err
}

// askingClient is a client for keys of a slot that is on its way to its node.
type askingClient struct{ rueidis.Client }

// Do implements [rueidis.Client].
func (c askingClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return c.DoMulti(ctx, cmd)[0]
}

// DoMulti implements [rueidis.Client].
func (c askingClient) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	all := make([]rueidis.Completed, 0, 2*len(cmds))
	for _, cmd := range cmds {
		all = append(all, c.B().Asking().Build(), cmd)
	}
	replies := c.Client.DoMulti(ctx, all...)
	for i := range cmds {
		replies[i] = replies[2*i+1]
	}
	return replies[:len(cmds)]
}

// RunAll makes the nodes that serve the slots of calls decide them, all at the same time, in as
// few round trips as possible, and writes their errors. A node decides its calls in their
// order, but for those that have to be sent again.
func (s *Servers) RunAll(ctx context.Context, calls []Pending) {
	pending := make([]*Pending, len(calls))
	to := make([]*Node, len(calls))
	for i := range calls {
		pending[i], to[i] = &calls[i], s.serving(calls[i].Slot)
	}
	for sent := 0; ; sent++ {
		s.runOnNodes(ctx, pending, to)
		again, wait := 0, false
		for i, call := range pending {
			next := s.redirected(ctx, call.Slot, to[i], call.Err)
			if next.node == nil {
				continue
			}
			call.asking = next.asking
			pending[again], to[again] = call, next.node
			again++
			wait = wait || next.later
		}
		pending, to = pending[:again], to[:again]
		if again == 0 || sent == maxRedirects || wait && !pause(ctx, sent) {
			return
		}
	}
}

// runOnNodes makes each call be decided by its node.
func (s *Servers) runOnNodes(ctx context.Context, calls []*Pending, to []*Node) {
	var nodes []*Node
	var parts [][]*Pending
	for i, call := range calls {
		at := slices.Index(nodes, to[i])
		switch {
		case to[i] == nil:
			call.Err = errNoNode
			continue
		case at < 0:
			at = len(nodes)
			nodes, parts = append(nodes, to[i]), append(parts, nil)
		}
		parts[at] = append(parts[at], call)
	}
	var others sync.WaitGroup
	for i, n := range nodes {
		if i > 0 {
			others.Go(func() { n.decide(ctx, parts[i]) })
		}
	}
	if len(nodes) > 0 {
		nodes[0].decide(ctx, parts[0])
	}
	others.Wait()
}

// onward is where a node sends a call on to.
type onward struct {
	node   *Node // nil: nowhere
	asking bool  // the slot is on its way there
	later  bool  // after a pause
}

// redirected returns where n sends a call for slot on to, which ended with err there.
func (s *Servers) redirected(ctx context.Context, slot int, n *Node, err error) onward {
	if err == nil || s.single != nil || script.IsRefusal(err) || errors.Is(err, script.ErrStale) {
		return onward{} // the node serves the slot
	}
	signal(s.changed)
	text, answered := said(err)
	if n == nil || !answered {
		return onward{}
	}
	switch verb, addr := redirect(text, n.Addr); verb {
	case "MOVED": // a new node gets the slot's other calls when it has connections
		to := s.node(addr)
		if to.manager.await(ctx); !to.Unavailable() {
			s.slots[slot].Store(to)
		}
		return onward{node: to}
	case "ASK": // the slot is on its way there
		to := s.node(addr)
		to.asked.Store(int64(remote.Elapsed()))
		to.manager.await(ctx)
		return onward{node: to, asking: true}
	case "CLUSTERDOWN": // n may be cut off from the others, and another one in its place
		s.down.Store(n, true)
	case "TRYAGAIN": // some keys of the call have moved, others not yet
		return onward{node: n, later: true}
	}
	return onward{}
}

// pause waits before a call is sent again for the time after so many. It returns false when
// ctx is done.
func pause(ctx context.Context, sent int) bool {
	select {
	case <-time.After(time.Millisecond << sent):
		return true
	case <-ctx.Done():
		return false
	}
}

// redirect returns the first word of a node's answer, and the address in it. An
// address without a host means the node's own.
func redirect(text, own string) (verb, addr string) {
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != "MOVED" && words[0] != "ASK" {
		return firstWord(text), ""
	}
	if len(words) > 2 {
		if colon := strings.LastIndexByte(words[2], ':'); colon >= 0 {
			return words[0], join(words[2][:colon], words[2][colon+1:], own)
		}
	}
	return "", ""
}

// join returns host and port as an address. An empty host is that of own.
func join(host, port, own string) string {
	host = strings.Trim(host, "[]")
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(own)
	}
	return net.JoinHostPort(host, port)
}

// node returns the node at addr. It makes one if need be, without a wait for its
// connections.
func (s *Servers) node(addr string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byAddr[addr]
	if n == nil {
		n = newNode(addr, s.config, s.codec)
		n.keep(nil)
		s.byAddr[addr] = n
	}
	return n
}

// watch updates the slots until the cluster is closed.
func (s *Servers) watch() {
	tick := time.Tick(refreshEvery)
	for {
		select {
		case <-s.config.life.Done():
			return
		case <-tick:
		case <-s.changed:
		}
		_ = s.refresh(s.config.life) // it is called again as long as calls fail
		// A cluster that is in trouble is not asked without a break.
		select {
		case <-s.config.life.Done():
			return
		case <-time.After(remote.BreakFor):
		}
	}
}

// refresh asks one node after the other who serves which slots, until one
// answers. It begins with the nodes that are available and have not just answered CLUSTERDOWN:
// one that is cut off from the others names itself.
func (s *Servers) refresh(ctx context.Context) error {
	all := s.Nodes()
	suspects := map[*Node]bool{}
	for _, n := range all {
		_, down := s.down.Load(n)
		suspects[n] = down || n.Breaker.Open()
	}
	s.down.Clear() // a node that is still cut off answers the next call so, too
	err := errNoSlots
	for _, suspect := range []bool{false, true} {
		for _, n := range all {
			client := n.client()
			if client == nil || suspects[n] != suspect {
				continue
			}
			if err = s.learn(ctx, n.Addr, client.Client); err == nil {
				return nil
			}
		}
	}
	s.mu.Lock()
	seeds := slices.Clone(s.seeds)
	s.mu.Unlock()
	for _, addr := range seeds {
		if slices.ContainsFunc(all, func(n *Node) bool { return n.Addr == addr }) {
			continue
		}
		client, failed := s.config.connection(addr, func() {})
		if failed != nil {
			err = fmt.Errorf("%s: %w", addr, failed)
			continue
		}
		err = s.learn(ctx, addr, client.Client)
		client.Close()
		if err == nil {
			return nil
		}
	}
	return err
}

// learn asks the node at addr who serves which slots. Nodes that are new get
// their slots when they have connections, or cannot be reached.
func (s *Servers) learn(ctx context.Context, addr string, client rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	answer, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	if len(answer) == 0 {
		return fmt.Errorf("%s: %w", addr, errNoSlots)
	}
	owners, seeds := map[*Node]bool{}, slices.Clone(s.config.Addrs)
	ranges := make([]slotRange, len(answer))
	for i, r := range answer {
		var ok bool
		if ranges[i], ok = readRange(r, addr); !ok {
			return fmt.Errorf("%s: a range of slots that reads %v", addr, r)
		}
		seeds = append(seeds, ranges[i].addrs...)
	}
	for _, r := range ranges {
		owners[s.node(r.addrs[0])] = true
	}
	for _, r := range ranges {
		n := s.node(r.addrs[0])
		n.manager.await(ctx)
		for slot := r.from; slot <= r.to; slot++ {
			s.slots[slot].Store(n)
		}
	}
	s.forget(owners, seeds)
	return nil
}

// Layout returns a digest of which nodes serve which slots, as the node that serves slot and this process
// know it, and the process that this node is. Both are the same as long as no slot moves and the node is not
// replaced or restarted. The digest is empty without a cluster, and both are for the client of a caller that has one.
func (s *Servers) Layout(ctx context.Context, slot int) (digest, process string, err error) {
	if s.single != nil && s.single.clustered {
		return "", "", nil // it may ask another node each time
	}
	err = s.Client(ctx, slot, func(c rueidis.Client) error {
		text, err := c.Do(ctx, c.B().Info().Section("server").Build()).ToString()
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(text, "run_id:")
		process, _, _ = strings.Cut(after, "\r\n")
		if s.single == nil {
			digest, err = slotOwners(ctx, c)
		}
		return err
	})
	if err == nil && s.single == nil {
		nodes, _ := s.Primaries()
		for _, n := range nodes {
			digest += n.Addr + " "
		}
		sum := sha256.Sum256([]byte(digest))
		digest = hex.EncodeToString(sum[:8])
	}
	return digest, process, err
}

// slotOwners returns the ranges of slots with the nodes that serve them, as the node of c knows them.
func slotOwners(ctx context.Context, c rueidis.Client) (string, error) {
	answer, err := c.Do(ctx, c.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return "", err
	}
	ranges := make([]string, len(answer))
	for i, m := range answer {
		r, ok := readRange(m, "")
		if !ok || r.id == "" {
			return "", errNoSlots
		}
		ranges[i] = fmt.Sprint(r.from, "-", r.to, " ", r.id)
	}
	slices.Sort(ranges)
	return strings.Join(ranges, "\n"), nil
}

// slotRange is a range of slots, and the nodes that have them, the primary first.
type slotRange struct {
	from, to int64
	addrs    []string
	id       string // of the primary
}

// readRange reads a range in the answer of the node at own.
func readRange(m rueidis.RedisMessage, own string) (r slotRange, ok bool) {
	parts, _ := m.ToArray()
	if len(parts) < 3 {
		return r, false
	}
	var err1, err2 error
	r.from, err1 = parts[0].AsInt64()
	r.to, err2 = parts[1].AsInt64()
	for _, part := range parts[2:] {
		at, _ := part.ToArray()
		if len(at) < 2 {
			return r, false
		}
		host, _ := at[0].ToString() // empty means the node's own
		port, err := at[1].AsInt64()
		if err != nil {
			return r, false
		}
		if len(r.addrs) == 0 && len(at) > 2 {
			r.id, _ = at[2].ToString()
		}
		r.addrs = append(r.addrs, join(host, fmt.Sprint(port), own))
	}
	return r, err1 == nil && err2 == nil && r.from >= 0 && r.to < slotCount
}

// forget drops the nodes that serve nothing any more.
func (s *Servers) forget(owners map[*Node]bool, seeds []string) {
	slices.Sort(seeds)
	s.mu.Lock()
	s.seeds = slices.Compact(seeds)
	var gone []*Node
	for addr, n := range s.byAddr {
		if asked := n.asked.Load(); !owners[n] && (asked == 0 || remote.Elapsed()-time.Duration(asked) > keepAsked) {
			gone = append(gone, n)
			delete(s.byAddr, addr)
		}
	}
	s.mu.Unlock()
	for _, n := range gone {
		for i := range s.slots {
			s.slots[i].CompareAndSwap(n, nil)
		}
		s.tasks.Go(n.goes)
	}
}

// slotCount is the number of slots that a cluster divides its keys into.
const slotCount = 16384

// SlotOf returns the cluster slot of a key: a checksum of the text between its
// first { and the next }, or of the whole key when there is no such text.
func SlotOf(key []byte) int {
	if from := bytes.IndexByte(key, '{'); from >= 0 {
		if n := bytes.IndexByte(key[from+1:], '}'); n > 0 {
			key = key[from+1 : from+1+n]
		}
	}
	return SlotOfTag(key)
}

// SlotOfTag returns the slot of the keys with this text between their first { and }.
func SlotOfTag(tag []byte) int { return int(crc16(tag) % slotCount) }

// crc16 returns the CRC-16/XMODEM of b, which the cluster specification uses.
func crc16(b []byte) (sum uint16) {
	for _, c := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>8)^c]
	}
	return sum
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum&0x8000 != 0
			sum <<= 1
			if carry {
				sum ^= 0x1021
			}
		}
		table[i] = sum
	}
	return table
}()
