package redisstore

import (
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

	// Changed, when not nil, is called when a node becomes unavailable, and when it answers
	// again. It may be called before Open returns, and for several nodes at the
	// same time. It must not use the store.
	Changed func(Change)

	mode wire.Mode

	// With an empty password there is no login, and username is ignored: the URL may
	// come from a variable that is not set.
	username, password string

	primary, sentinelUsername, sentinelPassword string // with Sentinels

	db                 int
	prefix, clientName string

	inFlight     int // calls that wait for one node, at most
	waitReplicas int // that must confirm a count
}

const (
	defaultName     = "weir"
	defaultTimeout  = 50 * time.Millisecond
	defaultInFlight = 1024
	maxInFlight     = wire.MaxInFlight
)

// withDefaults returns c with unset fields filled in.
func (c Config) withDefaults() Config {
	if c.prefix == "" {
		c.prefix = defaultName
	}
	if c.clientName == "" {
		c.clientName = defaultName
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.inFlight == 0 {
		c.inFlight = defaultInFlight
	}
	return c
}

// wire returns what connections and calls need of c.
func (c *Config) wire() *wire.Config {
	return &wire.Config{
		Mode: c.mode, Addrs: c.Addrs,
		Username: c.username, Password: c.password,
		Primary: c.primary, SentinelUsername: c.sentinelUsername, SentinelPassword: c.sentinelPassword,
		DB: c.db, TLS: c.TLS, ClientName: c.clientName,
		Timeout: c.Timeout, InFlight: c.inFlight, WaitReplicas: c.waitReplicas,
		Changed: changed(c.Changed),
	}
}

// validate returns every fault of c. Paths start with "store".
func (c *Config) validate() (faults fault.List) {
	if len(c.Addrs) == 0 {
		faults.Addf("store", "no server: want redis://host:port")
	}
	if slices.Contains(c.Addrs, "") {
		faults.Addf("store", "a server without an address: want host:port")
	}
	if c.mode == wire.Sentinel && c.primary == "" {
		faults.Addf("store", "no name of the primary: want redis+sentinel://host:port/name")
	}
	if c.mode == wire.Cluster && c.db != 0 {
		faults.Addf("store.db", "%d: a cluster has only database 0", c.db)
	}
	if c.mode == wire.Single && len(c.Addrs) > 1 {
		faults.Addf("store", "%d servers: several need redis+sentinel:// or redis+cluster://", len(c.Addrs))
	}
	if c.db < 0 {
		faults.Addf("store.db", "%d: want a number from 0", c.db)
	}
	if strings.ContainsAny(c.prefix, "{}") {
		faults.Addf("store.prefix", "%q: { and } are for the part of a key that picks its node", c.prefix)
	}
	if strings.ContainsFunc(c.clientName, func(r rune) bool { return r <= ' ' || r > '~' }) {
		faults.Addf("store.client_name", "%q: want printable ASCII without spaces", c.clientName)
	}
	if c.Timeout < time.Millisecond {
		faults.Addf("store.timeout", "%v: want at least 1ms", c.Timeout)
	}
	if c.inFlight < 1 || c.inFlight > maxInFlight {
		faults.Addf("store.in_flight", "%d: want a number from 1 to %d", c.inFlight, maxInFlight)
	}
	if c.waitReplicas < 0 {
		faults.Addf("store.wait_replicas", "%d: want a number from 0", c.waitReplicas)
	}
	return faults
}

// String returns the location of the servers as a URL without secrets, for logs.
func (c Config) String() string {
	var b strings.Builder
	switch {
	case c.socket():
		return "unix://" + c.Addrs[0]
	case c.TLS != nil:
		b.WriteString("rediss")
	default:
		b.WriteString("redis")
	}
	switch c.mode {
	case wire.Sentinel:
		b.WriteString("+sentinel")
	case wire.Cluster:
		b.WriteString("+cluster")
	}
	b.WriteString("://")
	if c.password != "" && c.username != "" {
		b.WriteString(url.PathEscape(c.username) + "@")
	}
	b.WriteString(strings.Join(c.Addrs, ","))
	if c.mode == wire.Sentinel {
		b.WriteString("/" + url.PathEscape(c.primary))
	}
	return b.String()
}

// socket reports whether the server is on a socket of this machine.
func (c *Config) socket() bool { return len(c.Addrs) == 1 && strings.HasPrefix(c.Addrs[0], "/") }
