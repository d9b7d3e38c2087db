package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// Open makes a store on the servers that a URL names; see [Parse]. The store
// connects on its own and again when it has to. Servers that are out of reach
// now are no error: calls answer outages until they are back. Servers that
// refuse, because of a wrong password say, are.
func Open(ctx context.Context, rawURL string, options ...Option) (*Store, error) {
	c, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, options...)
}

// Open makes a store on these servers, as the function of this name does.
func (c Config) Open(ctx context.Context, options ...Option) (*Store, error) {
	c = c.withDefaults()
	if err := c.validate().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	s := &Store{program: newProgram(c.Prefix), config: &c, dialer: newDialer()}
	for _, o := range options {
		o(s)
	}
	if err := s.connect(ctx); err != nil {
		_ = s.Close() // err says more
		return nil, fmt.Errorf("store %v: %w", c, err)
	}
	return s, nil
}

// connect makes the nodes. It returns what a server that could be reached
// refuses.
func (s *Store) connect(ctx context.Context) error {
	switch s.config.Mode {
	case Cluster:
		c := newCluster(s.config, s.dialer)
		s.servers = c
		for _, addr := range s.config.Addrs {
			c.node(addr)
		}
		err := c.refresh(ctx)
		c.tasks.Go(c.watch)
		return refusal(err)
	case Sentinel:
		n := newNode("primary "+s.config.Primary, s.config, nil)
		s.servers = alone{n}
		return s.findPrimary(ctx, n)
	default:
		addr := s.config.Addrs[0]
		n := newNode(addr, s.config, s.config.connect(addr, s.dialer))
		s.servers = alone{n}
		c := *n.client.Load()
		return refusal(errors.Join(n.askTime(ctx, c), alonePlease(ctx, c)))
	}
}

// alonePlease is the error of somebody who means a cluster or Sentinels, and
// would otherwise wonder why nearly no call is answered.
func alonePlease(ctx context.Context, c rueidis.Client) error {
	// An old server says nothing, and so does one that is not there.
	said, _ := c.Do(ctx, c.B().Arbitrary("HELLO").Build()).AsMap()
	mode, known := said["mode"]
	if !known {
		return nil
	}
	if text, _ := mode.ToString(); text == "cluster" || text == "sentinel" {
		return &modeError{text}
	}
	return nil
}

// modeError says that the server is of another kind than its URL.
type modeError struct{ mode string }

func (e *modeError) Error() string {
	return fmt.Sprintf("the server runs as a %[1]s: want redis+%[1]s://", e.mode)
}

// findPrimary asks the Sentinels for the primary, again and again in the
// background when they are out of reach.
func (s *Store) findPrimary(ctx context.Context, n *node) error {
	options := s.config.options(s.config.Addrs, s.dialer)
	client, err := rueidis.NewClient(options)
	if err == nil {
		n.client.Store(&client)
		return refusal(n.askTime(ctx, client))
	}
	if err := refusal(err); err != nil {
		return err
	}
	s.tasks.Go(func() {
		for {
			select {
			case <-s.dialer.ctx.Done():
				return
			case <-time.After(connectTimeout):
			}
			if client, err := rueidis.NewClient(options); err == nil {
				n.client.Store(&client)
				return
			}
		}
	})
	return nil
}

// refusal is err when a server said it and will say it again, or is not the
// right one.
func refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	var mode *modeError
	switch {
	case errors.As(err, &mode):
		return mode
	case errors.As(err, &certificate):
		return err
	}
	var said *rueidis.RedisError
	if !errors.As(err, &said) {
		return nil
	}
	switch firstWord(said.Error()) {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "OOM", "TRYAGAIN":
		return nil
	}
	return err
}
