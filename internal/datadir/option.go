package datadir

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Sync states when writes are synced, so that they survive a power loss.
type Sync string

const (
	// Always answers a call that changed something only after the change was written
	// and synced. Calls that wait at the same time are synced together.
	Always Sync = "always"
	// Interval syncs what changed after each interval.
	Interval Sync = "interval"
	// OS writes after each interval and leaves syncing to the operating system, which
	// takes about 30 seconds on Linux.
	OS Sync = "os"
)

// Syncs returns the values of [Sync]. The caller owns the slice.
func Syncs() []Sync { return []Sync{Always, Interval, OS} }

// DefaultInterval is the default of [WithInterval].
const DefaultInterval = 200 * time.Millisecond

const (
	leastInterval = time.Millisecond
	mostInterval  = time.Hour
)

// Option is an option of [Open].
type Option func(*config)

// config is what options set.
type config struct {
	sync       Sync
	interval   time.Duration
	memory     []memstore.Option
	told       func(Event)
	background bool

	given bool // the clock is the caller's
	disk  disk // nil: the directory

	readOnly bool // the files are only read

	hurried int64 // bytes that a flush writes of a compaction if there is a hurry

	startOf func() uint64 // of the machine; see there
	uptime  func() int64
}

func defaults() config {
	return config{sync: Interval, interval: DefaultInterval, told: func(Event) {}, hurried: maxCompaction, startOf: startOf, uptime: uptime}
}

func (c *config) check() error {
	if !slices.Contains(Syncs(), c.sync) {
		return fmt.Errorf("sync: %q: not one of always, interval, os", c.sync)
	}
	if c.interval < leastInterval || c.interval > mostInterval {
		return fmt.Errorf("interval: %v: out of range %v to %v", c.interval, leastInterval, mostInterval)
	}
	return nil
}

// WithSync sets when what was written is synced. Default: [Interval].
func WithSync(s Sync) Option { return func(c *config) { c.sync = Sync(strings.ToLower(string(s))) } }

// WithInterval sets how often what changed is written, from 1 ms to an hour. With
// [Always] it has no effect on calls, which do not wait for the interval. Default:
// [DefaultInterval].
func WithInterval(d time.Duration) Option { return func(c *config) { c.interval = d } }

// WithMaxBytes limits the memory of the counters, as [memstore.WithMaxBytes] does. Counters that are
// loaded may exceed it. Default: no limit.
func WithMaxBytes(n int64) Option {
	return func(c *config) { c.memory = append(c.memory, memstore.WithMaxBytes(n)) }
}

// WithClock makes the store call tell for the time, as [memstore.WithClock] does.
// Default: the machine's clocks.
func WithClock(tell func() window.Instant) Option {
	return func(c *config) {
		c.memory, c.given = append(c.memory, memstore.WithClock(tell)), true
	}
}

// WithEvents makes the store call told when the counters are loaded, when it finds damage,
// and when writing fails or works again. Calls are sequential, and start within [Open]. told must not call the store, and
// nothing is written until it returns. Default: no calls.
func WithEvents(told func(Event)) Option { return func(c *config) { c.told = told } }

// InBackground makes [Open] return before the counters are loaded. Until
// [Store.Loaded] is closed, all calls return an outage error with the reason "loading".
func InBackground() Option { return func(c *config) { c.background = true } }
