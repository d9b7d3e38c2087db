package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/remote"
)

// sentinels asks each Sentinel for its primary once a second, and listens to what it
// publishes. The Sentinel that leads a failover publishes which replica takes over when it tells
// the replica so, up to a second before Sentinels name the replica as the primary. What the old
// primary counts in this time is lost if it lives. A user who may not subscribe, or a lost
// message, leaves the question once a second.
type sentinels struct {
	config *Config
	node   *Node

	known  []*sentinel // used only by the manager of node, which calls primary
	latest atomic.Pointer[succession]
	tasks  sync.WaitGroup
}

// sentinel is one Sentinel.
type sentinel struct {
	addr   string
	forget context.CancelFunc
	asked  chan struct{}        // closed when the first question has ended
	view   atomic.Pointer[view] // of the last question
}

// view is what one Sentinel names, or why it names nothing.
type view struct {
	primary string
	epoch   int64    // the config epoch: of the last failover that was not given up
	peers   []string // the other Sentinels
	err     error
}

// unasked is the view of a Sentinel that has not been asked yet.
var unasked = &view{err: remote.ErrUnavailable}

// succession is the replica that takes over from a primary.
type succession struct {
	addr string
	at   time.Duration // when it was published
}

var (
	errNotPrimary = errors.New("the server that the Sentinels name is not a primary yet")
	errUnknown    = errors.New("the Sentinel does not know the primary")
)

const (
	// askEvery is how often a Sentinel is asked, and connected to again after a loss.
	askEvery = time.Second

	// sentinelTime is how long a Sentinel may take to answer.
	sentinelTime = 500 * time.Millisecond

	// succeedsWithin is how long after its name was published a replica has to become the
	// primary, and Sentinels to name it. Then what they say counts: it may have failed.
	succeedsWithin = 3 * time.Second
)

// The channels of Sentinels that name the replica that takes over.
const (
	switchChannel  = "+switch-master"
	promoteChannel = "+failover-state-wait-promotion"
)

// primary returns the address of the replica that takes over, if Sentinels have just
// published one. Otherwise it returns that of the primary that they name.
func (s *sentinels) primary(ctx context.Context) (string, error) {
	if s.known == nil {
		s.know(s.config.Addrs)
		for _, one := range s.known {
			select {
			case <-one.asked:
			case <-ctx.Done():
			}
		}
	}
	if next := s.latest.Load(); next != nil && remote.Elapsed()-next.at < succeedsWithin {
		return next.addr, nil
	}
	var views []*view
	var errs []error
	addrs := slices.Clone(s.config.Addrs)
	for _, one := range s.known {
		v := one.view.Load()
		if v.err != nil {
			errs = append(errs, fmt.Errorf("sentinel %s: %w", one.addr, v.err))
			continue
		}
		views = append(views, v)
		addrs = append(append(addrs, one.addr), v.peers...)
	}
	if len(views) == 0 {
		return "", errors.Join(errs...)
	}
	s.know(addrs)
	return newest(views), nil
}

// newest returns the primary of the newest epoch, which Sentinels take over from each other,
// too: those that are cut off from the others still name the old primary, however many they
// are. Within an epoch it returns the one that most name. Sentinels that are set up again begin
// with epoch 0: what they name counts when none answers any more that has an epoch of before.
func newest(views []*view) string {
	votes := map[string]int{}
	for _, v := range views {
		votes[v.primary]++
	}
	return slices.MaxFunc(views, func(a, b *view) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(votes[a.primary], votes[b.primary]))
	}).primary
}

// know asks the Sentinel at each address from now on, and forgets all others.
func (s *sentinels) know(addrs []string) {
	s.known = slices.DeleteFunc(s.known, func(one *sentinel) bool {
		gone := !slices.Contains(addrs, one.addr)
		if gone {
			one.forget()
		}
		return gone
	})
	for _, addr := range addrs {
		if slices.ContainsFunc(s.known, func(one *sentinel) bool { return one.addr == addr }) {
			continue
		}
		ctx, forget := context.WithCancel(s.config.life)
		one := &sentinel{addr: addr, forget: forget, asked: make(chan struct{})}
		one.view.Store(unasked)
		s.known = append(s.known, one)
		s.tasks.Go(func() { s.keep(ctx, one) })
	}
}

// keep asks a Sentinel, and listens to it, until ctx is done.
func (s *sentinels) keep(ctx context.Context, one *sentinel) {
	o := s.config.options(one.addr)
	o.SelectDB, o.Username, o.Password = 0, "", ""
	if s.config.SentinelPassword != "" {
		o.Username, o.Password = s.config.SentinelUsername, s.config.SentinelPassword
	}
	for ctx.Err() == nil {
		c, err := s.config.connect(o, func() {})
		if err != nil {
			s.learn(ctx, one, &view{err: err})
			continue
		}
		s.tasks.Go(func() { s.listen(ctx, c) })
		for again := true; again; again = ctx.Err() == nil && !c.lost.Load() {
			s.learn(ctx, one, s.ask(ctx, c))
		}
		c.Close()
	}
}

// learn keeps the view of a Sentinel until it is time for the next.
func (s *sentinels) learn(ctx context.Context, one *sentinel, v *view) {
	before := one.view.Swap(v)
	if before == unasked {
		close(one.asked)
	}
	if before.primary != v.primary {
		s.node.manager.moves()
	}
	select {
	case <-ctx.Done():
	case <-time.After(askEvery):
	}
}

// listen hears what the Sentinel of c publishes.
func (s *sentinels) listen(ctx context.Context, c *connection) {
	channels := c.B().Subscribe().Channel(switchChannel, promoteChannel).Build()
	_ = c.Receive(ctx, channels, func(m rueidis.PubSubMessage) {
		if next, ok := successorIn(m.Channel, m.Message, s.config.Primary); ok {
			s.latest.Store(&succession{next, remote.Elapsed()})
			s.node.manager.moves()
		}
	})
}

// ask asks the Sentinel of c for the primary, and for the other Sentinels.
func (s *sentinels) ask(ctx context.Context, c *connection) *view {
	ctx, cancel := context.WithTimeout(ctx, sentinelTime)
	defer cancel()
	b, name := c.B(), s.config.Primary
	// The epoch comes first: an address that is newer than its epoch misleads nobody.
	replies := c.DoMulti(ctx, b.Arbitrary("SENTINEL", "MASTER", name).Build(),
		b.SentinelGetMasterAddrByName().Master(name).Build(), b.SentinelSentinels().Master(name).Build())
	about, refused := replies[0].AsStrMap()
	epoch, _ := strconv.ParseInt(about["config-epoch"], 10, 64) // 0 if the user may not ask for it
	named, err := replies[1].AsStrSlice()
	if err != nil && !rueidis.IsRedisNil(err) {
		return &view{err: err}
	}
	if len(named) != 2 {
		return &view{err: errors.Join(refused, errUnknown)} // the Sentinel's own error refuses
	}
	v := &view{primary: net.JoinHostPort(named[0], named[1]), epoch: epoch}
	peers, _ := replies[2].ToArray()
	for i := range peers {
		if about, err := peers[i].AsStrMap(); err == nil && about["ip"] != "" && about["port"] != "" {
			v.peers = append(v.peers, net.JoinHostPort(about["ip"], about["port"]))
		}
	}
	return v
}

// close waits until nothing is asked any more. The manager of the node has ended.
func (s *sentinels) close() { s.tasks.Wait() }

// successorIn returns the address of the replica that takes over, as a message on a
// channel names it. It reports whether the message is about the primary of that name.
//
//	+switch-master                  NAME OLD-IP OLD-PORT IP PORT
//	+failover-state-wait-promotion  slave IP:PORT IP PORT @ NAME OLD-IP OLD-PORT
func successorIn(channel, message, name string) (addr string, ok bool) {
	words := strings.Fields(message)
	switch {
	case channel == switchChannel && len(words) == 5 && words[0] == name:
		return net.JoinHostPort(words[3], words[4]), true
	case channel == promoteChannel && len(words) == 8 && words[0] == "slave" && words[4] == "@" && words[5] == name:
		return net.JoinHostPort(words[2], words[3]), true
	}
	return "", false
}
