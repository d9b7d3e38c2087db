package durable

import (
	"log/slog"
	"time"

	"github.com/weirhq/weir/internal/datadir"
)

// Option is an option of [Open].
type Option func(*config)

type config []datadir.Option

func set(o datadir.Option) Option { return func(c *config) { *c = append(*c, o) } }

// Sync states when writes are synced, so that they survive a power loss.
type Sync string

const (
	// Always answers a call that changed something only after the change was written
	// and synced. Calls that wait at the same time are synced together.
	Always = Sync(datadir.Always)
	// Interval syncs what changed after each interval.
	Interval = Sync(datadir.Interval)
	// OS writes after each interval and leaves syncing to the operating system, which
	// takes about 30 seconds on Linux.
	OS = Sync(datadir.OS)
)

// WithSync sets when what was written is synced. Default: [Interval].
func WithSync(s Sync) Option { return set(datadir.WithSync(datadir.Sync(s))) }

// WithInterval sets how often what changed is written, from 1 ms to an hour. With
// [Always] it has no effect on calls, which do not wait for the interval. Default:
// 200 ms.
func WithInterval(d time.Duration) Option { return set(datadir.WithInterval(d)) }

// WithMaxBytes limits the memory of the counters, as memstore.WithMaxBytes does. Counters that are loaded
// may exceed it. Default: no limit.
func WithMaxBytes(n int64) Option { return set(datadir.WithMaxBytes(n)) }

// InBackground makes [Open] return before the counters are loaded. Until
// [Store.Loaded] is closed, all calls return an outage error with the reason "loading".
func InBackground() Option { return set(datadir.InBackground()) }

// WithEvents makes the store call told when the counters are loaded, when it finds damage, and when
// writing fails or works again. The level is [slog.LevelWarn] if counters are lost, [slog.LevelError] if
// a restart would lose them, and otherwise [slog.LevelInfo]. Calls are sequential, and start within
// [Open]. told must not call the store, and nothing is written until it returns. Default: no calls.
func WithEvents(told func(level slog.Level, text string)) Option {
	return set(datadir.WithEvents(func(e datadir.Event) { told(e.Level(), e.String()) }))
}
