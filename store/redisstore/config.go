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

// Mode is the deployment topology of the servers.
type Mode uint8

const (
	Single   Mode = iota // one address, which leads to one server
	Sentinel             // a primary that Sentinels watch over
	Cluster              // a Redis Cluster
)

// Config states which servers a store uses, and how. [Parse] makes one from a URL.
// A field with its zero value has its default. Addrs is required, and so is
// Primary with [Sentinel].
type Config struct {
	Mode Mode

	// Addrs holds the address of the server, or those of the Sentinels, or those
	// of some nodes of the cluster. An address is host:port, or the path of a
	// Unix socket, which starts with a slash.
	Addrs []string

	// Username and Password are the login at the servers. An empty Username
	// means the user "default". With an empty Password there is no login, and
	// Username is ignored: the URL may come from a variable that is not set.
	Username, Password string

	// Primary is the name that the Sentinels have for the primary.
	// SentinelUsername and SentinelPassword are the login at the Sentinels.
	Primary, SentinelUsername, SentinelPassword string

	// DB is the number of the database. A cluster has only database 0.
	DB int

	// TLS is the configuration of encrypted connections. Default: no encryption.
	TLS *tls.Config

	// Prefix is the start of the name of every key in Redis. Default: "weir".
	Prefix string

	// ClientName is the name that the servers show for the store's connections.
	// Default: "weir".
	ClientName string

	// Timeout is the longest time that a decision waits for answers, with all that
	// it asks. A slice of a batch has this time of its own, see [Store.Do].
	// Default 50 ms. See [WithTimeout].
	Timeout time.Duration

	// InFlight is the most calls that wait for one node at the same time. One
	// more call meets an outage at once. A slice counts as many calls as it has.
	// Default: 1024.
	InFlight int

	// WaitReplicas is the number of replicas that must confirm a count before the
	// call is answered. With 0, a failover can lose the counts of the last
	// moments, and the hits lost are admitted again. Default: 0.
	WaitReplicas int

	// Changed, when not nil, is called when a node is cut off, and when it answers
	// again. It may be called before Open returns, and for several nodes at the
	// same time. It must not use the store.
	Changed func(Change)
}

const (
	defaultName     = "weir"
	defaultTimeout  = 50 * time.Millisecond
	defaultInFlight = 1024
	maxInFlight     = wire.MaxInFlight
)

// withDefaults returns c with unset fields filled in.
func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = defaultName
	}
	if c.ClientName == "" {
		c.ClientName = defaultName
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	return c
}

// wire returns what connections and calls need of c.
func (c *Config) wire() *wire.Config {
	return &wire.Config{
		Mode: wire.Mode(c.Mode), Addrs: c.Addrs,
		Username: c.Username, Password: c.Password,
		Primary: c.Primary, SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
		DB: c.DB, TLS: c.TLS, ClientName: c.ClientName,
		Timeout: c.Timeout, InFlight: c.InFlight, WaitReplicas: c.WaitReplicas,
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
	if c.Mode == Sentinel && c.Primary == "" {
		faults.Addf("store", "no name of the primary: want redis+sentinel://host:port/name")
	}
	if c.Mode == Cluster && c.DB != 0 {
		faults.Addf("store.db", "%d: a cluster has only database 0", c.DB)
	}
	if c.Mode == Single && len(c.Addrs) > 1 {
		faults.Addf("store", "%d servers: several need redis+sentinel:// or redis+cluster://", len(c.Addrs))
	}
	if c.DB < 0 {
		faults.Addf("store.db", "%d: want a number from 0", c.DB)
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		faults.Addf("store.prefix", "%q: { and } are for the part of a key that picks its node", c.Prefix)
	}
	if strings.ContainsFunc(c.ClientName, func(r rune) bool { return r <= ' ' || r > '~' }) {
		faults.Addf("store.client_name", "%q: want printable ASCII without spaces", c.ClientName)
	}
	if c.Timeout < time.Millisecond {
		faults.Addf("store.timeout", "%v: want at least 1ms", c.Timeout)
	}
	if c.InFlight < 1 || c.InFlight > maxInFlight {
		faults.Addf("store.in_flight", "%d: want a number from 1 to %d", c.InFlight, maxInFlight)
	}
	if c.WaitReplicas < 0 {
		faults.Addf("store.wait_replicas", "%d: want a number from 0", c.WaitReplicas)
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
	switch c.Mode {
	case Sentinel:
		b.WriteString("+sentinel")
	case Cluster:
		b.WriteString("+cluster")
	}
	b.WriteString("://")
	if c.Password != "" && c.Username != "" {
		b.WriteString(url.PathEscape(c.Username) + "@")
	}
	b.WriteString(strings.Join(c.Addrs, ","))
	if c.Mode == Sentinel {
		b.WriteString("/" + url.PathEscape(c.Primary))
	}
	return b.String()
}

// socket reports whether the server is on a socket of this machine.
func (c *Config) socket() bool { return len(c.Addrs) == 1 && strings.HasPrefix(c.Addrs[0], "/") }
