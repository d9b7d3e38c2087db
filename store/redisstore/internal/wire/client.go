package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

const (
	// ringScale makes room for 2^12 calls in the queue of a connection, where a
	// slice of calls takes the place of one. The library does not look at
	// contexts once the queue is full, and calls that were given up stay in it
	// until they are answered. So it holds four times the default of calls in
	// flight.
	ringScale = 12

	// deadAfter is how long a connection may be silent, pings included, before
	// it is closed.
	deadAfter = time.Second

	// refreshEvery is how often the store asks Sentinels and clusters who leads,
	// even when nothing seems to have changed: a message can be missed.
	refreshEvery = 5 * time.Second

	bufferSize = 64 << 10
)

// connect returns a client of the server at addr. It connects with its first call.
func (c *Config) connect(addr string, d *dialer) rueidis.Client {
	o := c.options([]string{addr}, d)
	o.ForceSingleClient, o.Sentinel = true, rueidis.SentinelOption{}
	dial, made := o.DialCtxFn, false
	o.DialCtxFn = func(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
		if !made {
			return nil, errLater // the library would make the caller wait
		}
		return dial(ctx, addr, nd, config)
	}
	client, _ := rueidis.NewClient(o) // the error is errLater
	made = true
	return client
}

var errLater = errors.New("connects with the first call")

// options returns the options of the Redis library's client. It retries nothing,
// because it cannot know what may count twice.
func (c *Config) options(addrs []string, d *dialer) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress:         addrs,
		TLSConfig:           c.TLS,
		ClientName:          c.ClientName,
		SelectDB:            c.DB,
		RingScaleEachConn:   ringScale,
		ReadBufferEachConn:  bufferSize,
		WriteBufferEachConn: bufferSize,
		BlockingPoolSize:    c.InFlight,
		BlockingPoolCleanup: time.Minute,
		ConnWriteTimeout:    deadAfter,
		Dialer:              net.Dialer{Timeout: connectTimeout, KeepAlive: deadAfter},
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, config *tls.Config) (net.Conn, error) {
			return d.dial(ctx, addr, config)
		},
		DisableRetry:      true,
		DisableCache:      true,
		ForceSingleClient: c.Mode != Sentinel,
	}
	if c.Password != "" {
		o.Username, o.Password = c.Username, c.Password
	}
	if c.Mode == Sentinel {
		o.Sentinel = rueidis.SentinelOption{
			MasterSet:               c.Primary,
			TLSConfig:               c.TLS,
			Dialer:                  o.Dialer,
			ClientName:              c.ClientName,
			TopologyRefreshInterval: refreshEvery,
		}
		if c.SentinelPassword != "" {
			o.Sentinel.Username, o.Sentinel.Password = c.SentinelUsername, c.SentinelPassword
		}
	}
	return o
}
