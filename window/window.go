// Package window holds the algorithms that weir counts with.
// They decide when a hit leaves a window, how many hits the window holds, and
// when the next ones fit.
//
// A [Limit] declares a quota in a window, and [Compile] makes it ready for use.
// The methods of a [Compiled] limit are pure functions of a [State], which is
// the counter of one key: they have no clock, no lock and no IO. The caller keeps
// the state and passes the time. So the same code runs in memory under a lock,
// over a recorded log, and as the model that other stores are compared with.
//
//	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)})
//	now := window.At(time.Now())
//	s, r := l.Take(nil, now, window.Hits{N: 1})
//
// Time never runs backwards for a key: an instant before the latest one that the
// state remembers counts as that latest one. Rounding never admits more than the
// quota; the file of each kind tells what it rounds.
package window

import "time"

// Instant is a moment in microseconds since the Unix epoch. Microseconds stay
// exact in a Lua number (2^53) until the year 2255; nanoseconds would not.
type Instant int64

// At returns the instant of t, rounded down to a microsecond.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns the instant d after i. It rounds d to a microsecond towards zero.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub returns the length of time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return (i - j).length() }

// length returns i, the difference of two instants, as a duration.
func (i Instant) length() time.Duration { return time.Duration(i) * time.Microsecond }

const (
	// Never is the RetryAfter of hits that never fit, because there are more of
	// them than fit at once ([Result.Quota]).
	Never time.Duration = -1

	// Unlimited is the Quota of a limit that counts and admits everything.
	Unlimited int64 = -1

	// MaxHits is 2^53-1, the most hits that a window can hold and that
	// one call can count. Counts stop there; they never wrap.
	MaxHits int64 = 1<<53 - 1

	// MaxLength is the longest window, a hundred years of 365 days.
	MaxLength = 100 * 365 * 24 * time.Hour
)

// State is the counter of one key under one limit: some words whose layout
// depends on the kind of the window. A key that was never used has an empty
// state, and nil is one.
//
// The state that a method returns replaces the state that was passed, as with
// append: the passed one may have been overwritten. A State is not safe for
// concurrent use.
//
// A state stays valid for a limit with another quota, precision, number of cells
// or burst. It is not valid for a limit with another measure or with a window
// that has another [Window.ID].
type State []uint64

// Hits are the hits of one request.
type Hits struct {
	// N is the number of hits. With 0 no method changes the state. A negative N
	// means 0. Under a limit with measure [Distinct] any N above 0 means 1.
	N int64

	// Member is a hash that identifies the member. It is used with measure
	// [Distinct] only.
	Member uint64
}

// Result is the answer of a limit for one key. "Hits" are members in a limit with
// measure [Distinct].
type Result struct {
	// Allowed reports whether the hits fit (Check) or were counted (Take). It
	// is true for zero hits, and for all other methods.
	Allowed bool

	// Held reports whether the hits were held (take, record), or whether
	// the hold was found (Settle, Cancel, Renew).
	Held bool

	// Banned reports whether the key is banned after the call ([Limit.Ban]), for
	// ResetAfter. Remaining is then 0, and Used the number of hits that are held or
	// were settled during the ban.
	Banned bool

	// Struck reports whether the call was a strike, which began the ban.
	Struck bool

	// Quota is the most hits that fit at once: the limit's quota, a bucket's
	// burst, or [Unlimited].
	Quota int64

	// Used is the number of hits in the window after the call. Record can raise
	// it above the quota. In a bucket it is the number of hits that have not
	// drained yet, rounded up, and at most the burst.
	Used int64

	// Before is the number of hits in the window before the call, and 0 for a check,
	// take or record of a key that is banned already.
	Before int64

	// Remaining is the number of hits that still fit, from 0 to Quota, or
	// [Unlimited].
	Remaining int64

	// RetryAfter is the wait until the same hits fit, if there is no other
	// traffic and no hold is settled. For a banned key it can be longer than
	// ResetAfter, because of what is held. It is 0 when they were allowed, and [Never]
	// when they never fit.
	RetryAfter time.Duration

	// ResetAfter is the time until the key is as good as unused, but for strikes,
	// if there is no other traffic. It is 0 for an unused key, and [Never] for a
	// used one in an [Ever] window. For a banned key it is the time until the ban
	// ends. In a bucket what is held counts as if it drained after the last hold has
	// ended, so it can be too long.
	ResetAfter time.Duration

	// A Result is copied as whole pairs of words. Copies of copies would otherwise wait for
	// the processor to write the overlapping words of the first one.
	_ int64
}
