package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

const (
	// ringScale makes room for 2^12 calls on a connection. The client's queue
	// does not look at contexts once it is full, and calls that were given up
	// stay in it until they are answered; so it holds four times what callers
	// may have in flight.
	ringScale = 12

	// deadAfter is how long a connection may be silent, pings included, until
	// it is given up.
	deadAfter = time.Second

	// refreshEvery is how often Sentinels and clusters are asked who leads,
	// even when nothing seems to have changed: news can be missed.
	refreshEvery = 5 * time.Second

	bufferSize = 64 << 10
)

// connect is a client of the server at addr. It connects with its first call.
func (c *Config) connect(addr string, d *dialer) rueidis.Client {
	o := c.options([]string{addr}, d)
	o.ForceSingleClient, o.Sentinel = true, rueidis.SentinelOption{}
	dial, made := o.DialCtxFn, false
	o.DialCtxFn = func(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
		if !made {
			return nil, errLater // the library would have the caller wait
		}
		return dial(ctx, addr, nd, config)
	}
	client, _ := rueidis.NewClient(o) // the error is errLater
	made = true
	return client
}

var errLater = errors.New("connects with the first call")

// options are what the client of the Redis library needs. Nothing is retried:
// the library cannot know what may count twice.
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

// detour is a client that sends every command with another one before or
// behind it, on the same connection.
type detour struct {
	rueidis.Client
	asking   bool          // ASKING before, for a slot that is on its way to this node
	replicas int           // WAIT behind, for so many replicas to confirm
	within   time.Duration // how long WAIT waits
}

// Do implements [rueidis.Client].
func (d detour) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	commands := make([]rueidis.Completed, 0, 3)
	if d.asking {
		commands = append(commands, d.B().Asking().Build())
	}
	at := len(commands)
	commands = append(commands, cmd)
	if d.replicas > 0 {
		ms := max(1, d.within.Milliseconds())
		commands = append(commands, d.B().Wait().Numreplicas(int64(d.replicas)).Timeout(ms).Build())
	}
	replies := d.DoMulti(ctx, commands...)
	if d.replicas > 0 && replies[at].Error() == nil {
		confirmed, err := replies[at+1].AsInt64()
		if err == nil && confirmed < int64(d.replicas) {
			err = errReplicas
		}
		if err != nil {
			return rueidis.NewErrorResult(err)
		}
	}
	return replies[at]
}
