// Package peer holds the limiters that are measured side by side: weir, what
// else Go programs use, and the raw costs that bound them all. Each has a file
// of its own; to add one, write its file and name it in a list below.
package peer

import (
	"strings"
	"time"
)

// Config is what is asked of every peer.
type Config struct {
	// Quota hits of one key are admitted in Window.
	Quota  int64
	Window time.Duration

	// Now tells the time; nil means the machine's clock. Only peers whose
	// Clock is set listen to it.
	Now func() time.Time

	// Redis is the host:port of the server, for peers that count there.
	Redis string
}

// Limiter is a peer that was made, with the one call that is measured.
type Limiter struct {
	// Allow takes one hit of key and tells whether it is admitted. It is safe
	// for concurrent use.
	Allow func(key string) bool

	// Close ends what the limiter started; nil when there is nothing.
	Close func()
}

// Stop closes l, where there is something to close.
func (l Limiter) Stop() {
	if l.Close != nil {
		l.Close()
	}
}

// Kind is what a peer is.
type Kind uint8

// One that limits admits and denies; a cost is a part that limiters are made of;
// one that flows is set up so that it never has a reason to deny.
const (
	Limits Kind = iota
	Cost
	Flows
)

// Peer is one row of the tables.
type Peer struct {
	Name   string // in the tables
	Module string // its path, for the version; empty for what is written here
	Note   string // its settings, where there was a choice
	Kind   Kind

	Keys      bool // it keeps keys apart
	Clock     bool // it can be told the time
	Reference bool // the row that ratios in its table are taken of
	Hits      int  // of each key when a table is filled; 0 means 1

	// NoTrace says why the peer cannot be held to an exact log.
	NoTrace string

	New func(Config) (Limiter, error)
}

// Hot are the peers for one key: the raw costs, weir and all that keep their
// counts in memory.
func Hot() []Peer {
	return join(rawCosts(), []Peer{rawXsync(true)}, weirHot(), inMemory())
}

// Million are the peers that keep many keys apart, in memory.
func Million() []Peer {
	var keyed []Peer
	for _, p := range inMemory() {
		if p.Keys {
			keyed = append(keyed, p)
		}
	}
	return join([]Peer{rawTouch(), rawShards(), rawXsync(false), rawSyncMap()}, weirMillion(), keyed)
}

// Accuracy are the limiters whose answers are held to an exact log.
func Accuracy() []Peer {
	var some []Peer
	for _, p := range join(weirAccuracy(), inMemory()) {
		if p.Kind == Limits && p.Keys && p.NoTrace == "" {
			some = append(some, p)
		}
	}
	return some
}

// Redis are the peers that count in a Redis server, after two raw costs.
func Redis() []Peer {
	return join(rawRedis(), weirRedis(), redisRate(), ululeRedis(), goZeroRedis(), throttledRedis())
}

// inMemory are the others that count in this process's memory.
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

// Absent are limiters that people use and that are not measured here, each
// with the reason.
func Absent() []string {
	return []string{
		"github.com/mennanov/limiters: the module proxy does not serve it",
		"github.com/redis/rueidis/rueidislimiter: the module proxy does not serve it",
		"github.com/gubernator-io/gubernator: the module proxy does not serve it",
	}
}

// IsRaw says that a row bounds the others: it is no limiter that anyone would
// use.
func (p Peer) IsRaw() bool { return strings.HasPrefix(p.Name, "raw") }

// IsOurs says that a row is weir's.
func (p Peer) IsOurs() bool { return strings.HasPrefix(p.Name, "weir") }

// Modules are the paths of all modules that are measured, some more than once.
func Modules() []string {
	modules := []string{"github.com/weirhq/weir", "github.com/puzpuzpuz/xsync/v4"}
	for _, p := range join(Hot(), Redis()) {
		modules = append(modules, p.Module)
	}
	return modules
}
