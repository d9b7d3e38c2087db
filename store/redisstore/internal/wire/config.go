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
}

// MaxInFlight is the most calls that may wait for one node: a connection's queue
// has room for as many.
const MaxInFlight = 1 << ringScale
