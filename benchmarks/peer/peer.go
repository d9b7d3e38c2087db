// Package peer has the limiters that are measured: weir, other limiters for Go,
// and the raw costs that bound them all. Each has a file of its own. To add one,
// write its file and name it in a list below.
package peer

import (
	"strings"
	"time"
)

// Config is the limit that a peer must enforce.
type Config struct {
	// Quota is the number of hits of one key to admit in Window.
	Quota  int64
	Window time.Duration

	// Now returns the time; nil is the machine's clock. Only peers with Clock
	// use it.
	Now func() time.Time

	// Redis is the host:port of the server, for peers that count in Redis.
	Redis string

	// Cluster says that the server is a cluster of one node.
	Cluster bool
}

// Limiter is a running peer, with the call to measure.
type Limiter struct {
	// Allow takes one hit of key and reports whether it is admitted. It is safe
	// for concurrent use.
	Allow func(key string) bool

	// Close ends what the limiter started. It can be nil.
	Close func()
}

// Stop calls l.Close unless it is nil.
func (l Limiter) Stop() {
	if l.Close != nil {
		l.Close()
	}
}

// Kind is the kind of a peer.
type Kind uint8

// Limits is a limiter that admits and denies. Cost is a part that limiters are
// made of. Flows is a limiter that is set up to never deny.
const (
	Limits Kind = iota
	Cost
	Flows
)

// Peer is one row of the tables.
type Peer struct {
	Name   string // in the tables
	Module string // its path, for the version; empty for code of this package
	Note   string // its settings, if there was a choice
	Kind   Kind

	Keys      bool // it counts per key
	Clock     bool // its clock can be set
	Reference bool // the row that the ratios of its table refer to
	Hits      int  // per key when a table is filled; 0 means 1
	Several   int  // keys that a call decides; 0 means 1

	// NoTrace is the reason why the peer cannot be compared with an exact log.
	NoTrace string

	New func(Config) (Limiter, error)
}

// Hot returns the peers for one key: the raw costs, weir, and all others that
// count in memory.
func Hot() []Peer {
	return join(rawCosts(), []Peer{rawXsync(true)}, weirHot(), inMemory())
}

// Million returns the peers that count many keys in memory.
func Million() []Peer {
	var keyed []Peer
	for _, p := range inMemory() {
		if p.Keys {
			keyed = append(keyed, p)
		}
	}
	return join([]Peer{rawTouch(), rawShards(), rawXsync(false), rawSyncMap()}, weirMillion(), keyed)
}

// Accuracy returns the limiters whose answers are compared with an exact log.
func Accuracy() []Peer {
	var some []Peer
	for _, p := range join(weirAccuracy(), inMemory()) {
		if p.Kind == Limits && p.Keys && p.NoTrace == "" {
			some = append(some, p)
		}
	}
	return some
}

// Redis returns two raw costs and the peers that count in a Redis server.
func Redis() []Peer {
	return join(rawRedis(), weirRedis(), redisRate(), ululeRedis(), goZeroRedis(), throttledRedis())
}

// inMemory returns the other limiters that count in memory.
func inMemory() []Peer {
	return join(xtime(), uberRatelimit(), goLimiter(), throttledMemory(), slidingWindow(), ululeMemory(),
		jujuRatelimit(), httprateLocal(), tollboothLocal(), failsafeBursty(), goZeroMemory(), sentinelMemory())
}

func join(lists ...[]Peer) []Peer {
	var all []Peer
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Absent lists limiters that are in use but not measured here, with the reasons.
func Absent() []string {
	return []string{
		"github.com/mennanov/limiters: the module proxy does not serve it",
		"github.com/redis/rueidis/rueidislimiter: the module proxy does not serve it",
		"github.com/gubernator-io/gubernator: the module proxy does not serve it",
	}
}

// IsRaw reports whether p is a raw cost, which bounds the other rows.
func (p Peer) IsRaw() bool { return strings.HasPrefix(p.Name, "raw") }

// IsOurs reports whether p is weir's.
func (p Peer) IsOurs() bool { return strings.HasPrefix(p.Name, "weir") }

// Modules returns the paths of all measured modules, some more than once.
func Modules() []string {
	modules := []string{"github.com/weirhq/weir", "github.com/puzpuzpuz/xsync/v4"}
	for _, p := range join(Hot(), Redis()) {
		modules = append(modules, p.Module)
	}
	return modules
}
