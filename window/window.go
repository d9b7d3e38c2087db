// Package window holds the algorithms that weir counts with, one file each:
// how hits age, how many are inside a window now, and when the next ones fit.
//
// A [Limit] declares a quota in a window. [Compile] makes it ready for use. The
// methods of a [Compiled] limit are pure functions over a small [State]: no
// clock, no lock, no IO. The caller owns the state and passes the time, so the
// same code runs under a lock in memory, over a recorded log, and as the model
// that other stores are compared with.
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

// At returns the instant of t, cut to the microsecond.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns the instant d after i. It drops what is below a microsecond in d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub returns the length of time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return (i - j).length() }

// length returns i, the difference of two instants, as a duration.
func (i Instant) length() time.Duration { return time.Duration(i) * time.Microsecond }

const (
	// Never is the RetryAfter of hits that never fit: there are more of them
	// than the quota.
	Never time.Duration = -1

	// Unlimited is the Quota of a counter, which admits everything.
	Unlimited int64 = -1

	// MaxHits is 2^53-1, the most hits that a window can hold and that a
	// request can cost. Counts stop there; they never wrap.
	MaxHits int64 = 1<<53 - 1

	// MaxLength is the longest window, a hundred years of 365 days.
	MaxLength = 100 * 365 * 24 * time.Hour
)

// State is what is kept for one key under one limit: a few words whose layout
// belongs to the limit's kind. A key that was never used has an empty state.
// The state that a method returns replaces the one passed, as with append: the
// one passed may have been overwritten. A state stays valid when the limit's
// quota, precision, number of cells or burst changes. It does not when the
// kind, the length or the measure changes.
type State []uint64

// Hits are the hits of one request.
type Hits struct {
	// N is the number of hits. With 0 every method only looks. With measure
	// [Distinct] any N above 0 counts as 1. A negative N counts as 0.
	N int64

	// Member is the fingerprint of the member. It is used with measure
	// [Distinct] only.
	Member uint64
}

// Result is the answer of a limit for one key.
type Result struct {
	// Allowed reports whether the hits fit (Check) or were counted (Take). It
	// is true for zero hits, for Record and for Refund.
	Allowed bool

	// Quota is the most hits that fit at once: the limit's quota, a bucket's
	// burst, or [Unlimited].
	Quota int64

	// Used is the number of hits in the window after the call. Recorded hits
	// can raise it above the quota.
	Used int64

	// Before is the number of hits in the window before the call.
	Before int64

	// Remaining is the number of hits that still fit, from 0 to Quota, or
	// [Unlimited].
	Remaining int64

	// RetryAfter is the wait until the same hits fit, if there is no other
	// traffic: 0 when they were allowed, [Never] when they never fit.
	RetryAfter time.Duration

	// ResetAfter is the time until the key is as good as unused.
	ResetAfter time.Duration
}
