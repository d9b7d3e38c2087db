package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store/remote"
)

// sentinels asks Sentinels for their primary, and listens to what they publish, on a
// connection to each of them. The Sentinel that leads a failover publishes which replica
// takes over when it tells the replica so, up to a second before Sentinels name the replica
// as the primary. What the old primary counts in this time is lost if it lives. A user who
// may not subscribe, or a lost message, leaves the question once a second.
type sentinels struct {
	config *Config
	node   *Node

	// Used only by the manager of node, which calls primary.
	addrs    []string        // the one that has answered last is the first
	conn     *connection     // to the first; nil when it is to be made
	listened map[string]bool // by address

	latest    atomic.Pointer[succession]
	listening sync.WaitGroup
}

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
	// sentinelTime is how long one Sentinel may take to answer.
	sentinelTime = 500 * time.Millisecond

	// succeedsWithin is how long a replica has to become the primary after the command
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

// primary returns the address of the replica that takes over, if Sentinels have just
// published one. Otherwise it asks one Sentinel after the other for the address of the
// primary, until one answers.
func (s *sentinels) primary(ctx context.Context) (string, error) {
	s.listen()
	if next := s.latest.Load(); next != nil {
		since := remote.Elapsed() - next.at
		used := s.node.manager.at.Load() == next.addr && s.node.client() != nil
		if since < succeedsWithin || used && since < agreeWithin {
			return next.addr, nil
		}
	}
	var errs []error
	for range s.addrs {
		addr, err := s.ask(ctx)
		if err == nil {
			return addr, nil
		}
		errs = append(errs, fmt.Errorf("sentinel %s: %w", s.addrs[0], err))
		s.disconnect()
		s.addrs = append(s.addrs[1:len(s.addrs):len(s.addrs)], s.addrs[0])
	}
	return "", errors.Join(errs...)
}

// connect connects to the Sentinel at addr.
func (s *sentinels) connect(addr string) (*connection, error) {
	o := s.config.options(addr)
	o.SelectDB, o.Username, o.Password = 0, "", ""
	if s.config.SentinelPassword != "" {
		o.Username, o.Password = s.config.SentinelUsername, s.config.SentinelPassword
	}
	return s.config.connect(o, func() {})
}

// ask asks the first Sentinel for the primary, and for the other Sentinels.
func (s *sentinels) ask(ctx context.Context) (string, error) {
	if s.conn == nil || s.conn.lost.Load() {
		s.disconnect()
		l, err := s.connect(s.addrs[0])
		if err != nil {
			return "", err
		}
		s.conn = l
	}
	ctx, cancel := context.WithTimeout(ctx, sentinelTime)
	defer cancel()
	b := s.conn.B()
	named, err := s.conn.Do(ctx, b.SentinelGetMasterAddrByName().Master(s.config.Primary).Build()).AsStrSlice()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", err
	}
	others, err := s.conn.Do(ctx, b.SentinelSentinels().Master(s.config.Primary).Build()).ToArray()
	for i := range others {
		about, err := others[i].AsStrMap()
		addr := net.JoinHostPort(about["ip"], about["port"])
		if err == nil && about["ip"] != "" && about["port"] != "" && !slices.Contains(s.addrs, addr) {
			s.addrs = append(s.addrs[:len(s.addrs):len(s.addrs)], addr)
		}
	}
	if len(named) != 2 {
		return "", errors.Join(err, errUnknown) // the Sentinel's own error refuses
	}
	return net.JoinHostPort(named[0], named[1]), nil
}

func (s *sentinels) disconnect() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// listen subscribes to all known Sentinels.
func (s *sentinels) listen() {
	if s.listened == nil {
		s.listened = map[string]bool{}
	}
	for _, addr := range s.addrs {
		if !s.listened[addr] {
			s.listened[addr] = true
			s.listening.Go(func() { s.hear(addr) })
		}
	}
}

// hear listens to the Sentinel at addr until the servers are closed.
func (s *sentinels) hear(addr string) {
	for life := s.config.life; life.Err() == nil; {
		if l, err := s.connect(addr); err == nil {
			channels := l.B().Subscribe().Channel(switchChannel, promoteChannel).Build()
			_ = l.Receive(life, channels, func(m rueidis.PubSubMessage) {
				if next, ok := successorIn(m.Channel, m.Message, s.config.Primary); ok {
					s.latest.Store(&succession{next, remote.Elapsed()})
					s.node.manager.moves()
				}
			})
			l.Close()
		}
		select {
		case <-life.Done():
		case <-time.After(listenAgain):
		}
	}
}

// close ends the listening, and waits for it. The manager of the node has ended.
func (s *sentinels) close() {
	s.listening.Wait()
	s.disconnect()
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
