package wire

import (
	"crypto/tls"
	"time"
)

// Mode is the deployment topology of the servers.
type Mode uint8

const (
	Single   Mode = iota // one server
	Sentinel             // a primary that Sentinels watch over
	Cluster              // a cluster
)

// Config is what connections and calls need. The store's configuration documents
// the fields and fills in the defaults.
type Config struct {
	Mode                                        Mode
	Addrs                                       []string
	Username, Password                          string
	Primary, SentinelUsername, SentinelPassword string

	DB           int
	TLS          *tls.Config
	ClientName   string
	Timeout      time.Duration // 0: none, and neither breaker nor in-flight bound
	InFlight     int
	WaitReplicas int

	// Changed, when not nil, is called for each node that is unavailable, and when
	// it answers again; never twice at the same time for one node.
	Changed func(Change)
}

// Change is the start or the end of a time in which a node gets no calls.
type Change struct {
	Addr        string
	Unavailable bool          // the start
	Gone        bool          // the end: the node has left the cluster
	Err         error         // at the start: why
	Lasted      time.Duration // at the end: since the start
	Missed      int64         // at the end: outages since the start
}

// MaxInFlight is the most calls that may wait for one node: a connection's queue
// has room for as many.
const MaxInFlight = 1 << ringScale
