package wire

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// sentinelNews listens to what Sentinels publish about the primary, on a connection to
// each of them. The Sentinel that leads a failover publishes which replica takes over
// when it tells the replica so, up to a second before Sentinels name the replica as the
// primary. What the old primary counts in this time is lost if it lives. A user who may
// not subscribe, or a lost message, leaves the question once a second.
type sentinelNews struct {
	latest atomic.Pointer[succession]

	tasks    sync.WaitGroup
	cancel   context.CancelFunc
	ctx      context.Context
	listened map[string]bool // by address; of the manager alone
}

// succession is the replica that takes over from a primary.
type succession struct {
	addr string
	at   time.Duration // when it was published
}

const (
	// succeedsWithin is how long a replica has to become the primary when it was told
	// so. Then Sentinels are asked again: it may have failed.
	succeedsWithin = time.Second

	// agreeWithin is how long after that Sentinels may still name the old primary
	// while the new one is in use.
	agreeWithin = 10 * time.Second

	// listenAgain is the pause before a lost connection to a Sentinel is made again.
	listenAgain = time.Second
)

// The channels of Sentinels that name the replica that takes over.
const (
	switchChannel  = "+switch-master"
	promoteChannel = "+failover-state-wait-promotion"
)

// successor returns the address of the replica that takes over now.
func (w *sentinelNews) successor(n *Node) (string, bool) {
	next := w.latest.Load()
	if next == nil {
		return "", false
	}
	since := elapsed() - next.at
	used := n.manager.at == next.addr && n.client() != nil
	return next.addr, since < succeedsWithin || used && since < agreeWithin
}

// listen makes sure that all Sentinels that are known are listened to.
func (w *sentinelNews) listen(s *sentinels) {
	if w.listened == nil {
		w.listened = map[string]bool{}
		w.ctx, w.cancel = context.WithCancel(s.dialer.ctx)
	}
	for _, addr := range s.addrs {
		if !w.listened[addr] {
			w.listened[addr] = true
			w.tasks.Go(func() { w.hear(s, addr) })
		}
	}
}

// hear listens to the Sentinel at addr until the store is closed.
func (w *sentinelNews) hear(s *sentinels, addr string) {
	for w.ctx.Err() == nil {
		if l, err := s.connect(addr); err == nil {
			channels := l.B().Subscribe().Channel(switchChannel, promoteChannel).Build()
			_ = l.Receive(w.ctx, channels, func(m rueidis.PubSubMessage) {
				if next, ok := successorIn(m.Channel, m.Message, s.config.Primary); ok {
					w.latest.Store(&succession{next, elapsed()})
					s.node.manager.moves()
				}
			})
			l.Close()
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

// close ends the listening, and waits for it.
func (w *sentinelNews) close() {
	if w.cancel != nil {
		w.cancel()
	}
	w.tasks.Wait()
}

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
