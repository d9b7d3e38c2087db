package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// sentinels asks Sentinels for their primary, and listens to what they publish. Only
// the manager of one node calls primary.
type sentinels struct {
	config *Config
	dialer *dialer
	node   *Node
	addrs  []string    // the one that has answered last is the first
	conn   *connection // to the first; nil when it is to be made
	news   sentinelNews
}

var (
	errNotPrimary = errors.New("the server that the Sentinels name is not a primary yet")
	errUnknown    = errors.New("the Sentinel does not know the primary")
)

// sentinelTime is how long one Sentinel may take to answer.
const sentinelTime = 500 * time.Millisecond

// primary returns the address of the replica that takes over, if Sentinels have just
// published one. Otherwise it asks one Sentinel after the other for the address of the
// primary, until one answers.
func (s *sentinels) primary(ctx context.Context) (string, error) {
	s.news.listen(s)
	if addr, ok := s.news.successor(s.node); ok {
		return addr, nil
	}
	var errs []error
	for range s.addrs {
		addr, err := s.ask(ctx)
		if err == nil {
			return addr, nil
		}
		errs = append(errs, fmt.Errorf("sentinel %s: %w", s.addrs[0], err))
		s.close()
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
	return s.config.connect(o, s.dialer, nothing)
}

// ask asks the first Sentinel for the primary, and for the other Sentinels.
func (s *sentinels) ask(ctx context.Context) (string, error) {
	if s.conn == nil || s.conn.lost.Load() {
		s.close()
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
	if err == nil {
		s.learn(others)
	}
	if len(named) != 2 {
		return "", errors.Join(err, errUnknown) // the Sentinel's own error refuses
	}
	return net.JoinHostPort(named[0], named[1]), nil
}

// learn adds the Sentinels that another one has named.
func (s *sentinels) learn(others []rueidis.RedisMessage) {
	for i := range others {
		about, err := others[i].AsStrMap()
		if err != nil || about["ip"] == "" || about["port"] == "" {
			continue
		}
		if addr := net.JoinHostPort(about["ip"], about["port"]); !slices.Contains(s.addrs, addr) {
			s.addrs = append(s.addrs[:len(s.addrs):len(s.addrs)], addr)
		}
	}
}

// close closes the connection.
func (s *sentinels) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
