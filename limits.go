package weir

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Limit is a quota in a window. The functions Sliding, Cells, Fixed, Calendar,
// Bucket and Members make the usual ones; see [window.Limit] for all its fields.
type Limit = window.Limit

// Result is the answer of a [Limiter] for one key.
type Result struct {
	// Result tells whether the hits are admitted, and holds the numbers of the
	// key, under the limit that decides if there are several ([And]): of those that deny the
	// hits the one with the longest RetryAfter, so that the hits fit under all limits after
	// that; and if none denies them the one with the fewest hits that remain.
	window.Result

	// Limit is the number of the limit that decides, in the order of [Limiter.Limits]: 0
	// is the one that NewLimiter got.
	Limit int

	// Degraded reports whether the store could not answer, so that the
	// limiter's outage policy decided (see [WithOutage]). If a local store
	// decided, the numbers are those of this process and its share of the quota.
	// Otherwise only Quota is known, and the other numbers are 0. If the
	// policy denied, RetryAfter is a second, or the time until the first key may
	// expire if there was no room for the key.
	Degraded bool

	reason store.Reason // empty unless Degraded
}

// DegradedReason returns why the store could not answer, such as "late" over Redis. It
// is empty for a result that is not Degraded.
func (r *Result) DegradedReason() store.Reason { return r.reason }

// Sliding returns a limit of quota hits in any window of length d. It is exact
// up to a quota of 100. Above that it can deny less than 1 % of the quota early.
func Sliding(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Sliding(d)}
}

// Cells returns a limit of quota hits in any window of length d, counted in 60
// cells of d/60, for very high rates. The oldest cell counts as a whole until all
// of it has left the window, so at most the hits of one cell are denied early.
func Cells(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Cells(d, 0)}
}

// Fixed returns a limit of quota hits in a window that starts with the first hit
// and lasts d. Up to twice the quota can pass around the end of a window: at its
// end and at the start of the next.
func Fixed(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Fixed(d)}
}

// Calendar returns a limit of quota hits in each minute, hour, day, week, month or
// year of zone. A nil zone means UTC.
func Calendar(quota int64, p window.Period, zone *time.Location) Limit {
	return Limit{Quota: quota, Window: window.Calendar(p, zone)}
}

// Bucket returns a limit of quota hits in d on average, of which at most burst
// come at once. Up to burst+quota hits can pass within d. A burst of 0 means the
// quota. A burst of 1 spaces hits evenly.
func Bucket(quota int64, d time.Duration, burst int64) Limit {
	return Limit{Quota: quota, Window: window.Bucket(d, burst)}
}

// Members returns a limit of quota different members in any window of length d.
// The quota is at most [window.MaxEntries].
func Members(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Measure: window.Distinct, Window: window.Sliding(d)}
}
