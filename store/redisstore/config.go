package redisstore

import (
	"cmp"
	"crypto/tls"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
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
	// Default 50 ms. See [WithTimeout].
	Timeout time.Duration

	// Changed, when not nil, is called when a node is cut off, and when it answers
	// again. It may be called before Open returns, and for several nodes at the
	// same time. It must not use the store.
	Changed func(Change)

	prefix string

	// What only a URL states, without the fields above. With an empty password there is no
	// login, and the user's name is ignored: the URL may come from a variable that is not set.
	rest wire.Config
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
func (c *Config) wire() *wire.Config {
	w := c.rest
	w.Addrs, w.TLS, w.Timeout = c.Addrs, c.TLS, c.Timeout
	if c.Changed != nil {
		w.Changed = func(change wire.Change) { c.Changed(Change(change)) }
	}
	return &w
}

// validate returns every fault of c. Paths start with "store".
func (c *Config) validate() (faults fault.List) {
	if len(c.Addrs) == 0 {
		faults.Addf("store", "no server: want redis://host:port")
	}
	if slices.Contains(c.Addrs, "") {
		faults.Addf("store", "a server without an address: want host:port")
	}
	if c.rest.Mode == wire.Sentinel && c.rest.Primary == "" {
		faults.Addf("store", "no name of the primary: want redis+sentinel://host:port/name")
	}
	if c.rest.Mode == wire.Cluster && c.rest.DB != 0 {
		faults.Addf("store.db", "%d: a cluster has only database 0", c.rest.DB)
	}
	if c.rest.Mode == wire.Single && len(c.Addrs) > 1 {
		faults.Addf("store", "%d servers: several need redis+sentinel:// or redis+cluster://", len(c.Addrs))
	}
	if c.rest.DB < 0 {
		faults.Addf("store.db", "%d: want a number from 0", c.rest.DB)
	}
	if strings.ContainsAny(c.prefix, "{}") {
		faults.Addf("store.prefix", "%q: { and } are for the part of a key that picks its node", c.prefix)
	}
	if strings.ContainsFunc(c.rest.ClientName, func(r rune) bool { return r <= ' ' || r > '~' }) {
		faults.Addf("store.client_name", "%q: want printable ASCII without spaces", c.rest.ClientName)
	}
	if c.Timeout < time.Millisecond {
		faults.Addf("store.timeout", "%v: want at least 1ms", c.Timeout)
	}
	if c.rest.InFlight < 1 || c.rest.InFlight > wire.MaxInFlight {
		faults.Addf("store.in_flight", "%d: want a number from 1 to %d", c.rest.InFlight, wire.MaxInFlight)
	}
	if c.rest.WaitReplicas < 0 {
		faults.Addf("store.wait_replicas", "%d: want a number from 0", c.rest.WaitReplicas)
	}
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
	case wire.Sentinel:
		return scheme + "+sentinel://" + hosts + "/" + url.PathEscape(c.rest.Primary)
	case wire.Cluster:
		return scheme + "+cluster://" + hosts
	}
	return scheme + "://" + hosts
}
