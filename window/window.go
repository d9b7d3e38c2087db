// Package window holds the algorithms that weir counts with, one file each:
// how hits age, how many are inside a window now, and when the next ones fit.
//
// Everything here is a pure function over a small [State]: no clock, no lock,
// no IO. The caller owns the state and tells the time, so the same code runs
// under a lock in memory, over a recorded log, and as the model that another
// store is held to.
//
//	l := window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}
//	s, r := l.Take(nil, now, window.Hits{N: 1})
//
// Time never runs backwards for a key: an instant earlier than the latest one
// that the state remembers counts as that one. Every rounding goes the way
// that never admits more than the quota; each kind's file says which way.
package window

import "time"

// Instant is a moment in microseconds since the Unix epoch. Microseconds stay
// exact in a Lua number (2^53) until the year 2255; nanoseconds would not.
type Instant int64

// At is the instant of t, cut to the microsecond.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time is i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add is the instant d after i. What is below a microsecond in d is dropped.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub is how long after j i is.
func (i Instant) Sub(j Instant) time.Duration { return (i - j).length() }

// length is i, the difference of two instants, as a duration.
func (i Instant) length() time.Duration { return time.Duration(i) * time.Microsecond }

const (
	// Never is the RetryAfter of hits that will not fit however long the
	// caller waits: there are more of them than the quota.
	Never time.Duration = -1

	// Unlimited as a Quota makes a counter: it counts and admits everything.
	Unlimited int64 = -1

	// MaxHits is the most hits that a window can hold and a request can cost,
	// 2^53-1. Counts stop there; they never wrap.
	MaxHits int64 = 1<<53 - 1

	// MaxLength is the longest window, a hundred years of 365 days.
	MaxLength = 100 * 365 * 24 * time.Hour
)

// State is what is kept for one key under one limit: a few words whose layout
// belongs to the limit's kind. An empty state is a key that was never used.
// The state that a function returns replaces the one passed, as with append;
// the one passed may have been overwritten. A state survives a changed quota,
// precision, number of cells or burst; not another kind, length or measure.
type State []uint64

// Hits is what one request asks of a limit.
type Hits struct {
	// N is the number of hits. With N = 0 every verb only looks. With
	// measure [Distinct] any N above 0 is one. Negative is taken as 0.
	N int64

	// Member is the fingerprint of the member, with measure [Distinct] only.
	Member uint64
}

// Result is what a limit answers for one key.
type Result struct {
	// Allowed says that the hits fit (check), or that they were counted (take).
	// Looking (N = 0), recording and refunding are always allowed.
	Allowed bool

	// Quota is the most hits that fit at once: the limit's quota, a bucket's
	// burst, or [Unlimited].
	Quota int64

	// Used is the number of hits in the window, after the call. It can pass
	// the quota where hits were recorded.
	Used int64

	// Before is what Used was before the call.
	Before int64

	// Remaining is how many hits still fit: 0 ≤ Remaining ≤ Quota, or
	// [Unlimited].
	Remaining int64

	// RetryAfter is how long to wait, without other traffic, until these
	// same hits fit. 0 when they were allowed, [Never] when they never will.
	RetryAfter time.Duration

	// ResetAfter is how long until the key is as good as unused.
	ResetAfter time.Duration
}
