package redisstore

import (
	"cmp"
	"crypto/tls"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
)

// Config states which servers a store uses, and how. [Parse] makes one from a URL, which
// states what the fields do not have. Fields may be changed before [Config.Open].
type Config struct {
	// Addrs holds the address of the server, or those of the Sentinels, or those
	// of some nodes of the cluster. An address is host:port, or the path of a
	// Unix socket, which starts with a slash.
	Addrs []string

	// TLS is the configuration of encrypted connections. Default: no encryption.
	TLS *tls.Config

	// Timeout is the longest time that a decision waits for answers, with all that
	// it asks. A slice of a batch has this time of its own, see [Store.Do].
	// Default 50 ms. See [remote.WithTimeout].
	Timeout time.Duration

	// Changed, when not nil, is called when a node becomes unavailable, and when it answers
	// again. It may be called before Open returns, and for several nodes at the
	// same time. It must not block, or use the store.
	Changed func(Change)

	prefix string

	// What only a URL states, without the fields above. With an empty password there is no
	// login, and the user's name is ignored: the URL may come from a variable that is not set.
	rest conn.Config
}

const (
	defaultName     = "weir"
	defaultTimeout  = 50 * time.Millisecond
	defaultInFlight = 1024
)

// withDefaults returns c with unset fields filled in.
func (c Config) withDefaults() Config {
	c.prefix = cmp.Or(c.prefix, defaultName)
	c.rest.ClientName = cmp.Or(c.rest.ClientName, defaultName)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.rest.InFlight = cmp.Or(c.rest.InFlight, defaultInFlight)
	return c
}

// wire returns what connections and calls need of c.
func (c *Config) wire() *conn.Config {
	w := c.rest
	w.Addrs, w.TLS, w.Timeout, w.Changed = c.Addrs, c.TLS, c.Timeout, c.Changed
	return &w
}

// validate returns every fault of c. Paths start with "store".
func (c *Config) validate() (faults fault.List) {
	bad := func(is bool, path, format string, args ...any) {
		if is {
			faults.Addf(path, format, args...)
		}
	}
	w := &c.rest
	bad(len(c.Addrs) == 0, "store", "no server: want redis://host:port")
	bad(slices.Contains(c.Addrs, ""), "store", "a server without an address: want host:port")
	bad(w.Mode == conn.Sentinel && w.Primary == "", "store", "no name of the primary: want redis+sentinel://host:port/name")
	bad(w.Mode == conn.Cluster && w.DB != 0, "store.db", "%d: a cluster has only database 0", w.DB)
	bad(w.Mode == conn.Single && len(c.Addrs) > 1, "store", "%d servers: several need redis+sentinel:// or redis+cluster://", len(c.Addrs))
	bad(w.DB < 0, "store.db", "%d: want a number from 0", w.DB)
	bad(strings.ContainsAny(c.prefix, "{}"), "store.prefix", "%q: { and } are for the part of a key that picks its node", c.prefix)
	unprintable := strings.ContainsFunc(w.ClientName, func(r rune) bool { return r <= ' ' || r > '~' })
	bad(unprintable, "store.client_name", "%q: want printable ASCII without spaces", w.ClientName)
	bad(c.Timeout < time.Millisecond, "store.timeout", "%v: want at least 1ms", c.Timeout)
	bad(w.InFlight < 1 || w.InFlight > conn.MaxInFlight, "store.in_flight", "%d: want a number from 1 to %d", w.InFlight, conn.MaxInFlight)
	bad(w.WaitReplicas < 0, "store.wait_replicas", "%d: want a number from 0", w.WaitReplicas)
	return faults
}

// String returns the location of the servers as a URL without secrets, for logs.
func (c Config) String() string {
	hosts := strings.Join(c.Addrs, ",")
	if len(c.Addrs) == 1 && strings.HasPrefix(hosts, "/") {
		return "unix://" + hosts
	}
	scheme := "redis"
	if c.TLS != nil {
		scheme = "rediss"
	}
	if c.rest.Password != "" && c.rest.Username != "" {
		hosts = url.PathEscape(c.rest.Username) + "@" + hosts
	}
	switch c.rest.Mode {
	case conn.Sentinel:
		return scheme + "+sentinel://" + hosts + "/" + url.PathEscape(c.rest.Primary)
	case conn.Cluster:
		return scheme + "+cluster://" + hosts
	}
	return scheme + "://" + hosts
}
