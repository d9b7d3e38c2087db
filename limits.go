package weir

import (
	"slices"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Limit is a quota in a window. See package [window] for all its fields.
type Limit = window.Limit

// Result is what a [Limiter] answers for one key.
type Result struct {
	// The numbers, and whether the hits are admitted.
	window.Result

	// Degraded reports whether the store could not answer, so that the
	// limiter's outage policy did: see [WithOutage]. Unless the policy is
	// local, the numbers other than Quota are unknown, and 0.
	Degraded bool

	reason uint8 // one of store.Reasons, from 1; 0 is none
}

// DegradedReason returns why the store could not answer: [store.ReasonLate] and
// so on. It is empty for a result that is not Degraded.
func (r *Result) DegradedReason() store.Reason {
	if r.reason == 0 {
		return ""
	}
	return store.Reasons()[r.reason-1]
}

// degrade makes r the answer of an outage policy. A reason takes one byte,
// because a Result is copied on the fast path.
func (r *Result) degrade(reason store.Reason) {
	all := store.Reasons()
	at := slices.Index(all, reason)
	if at < 0 {
		at = slices.Index(all, store.ReasonUnknown)
	}
	r.Degraded, r.reason = true, uint8(at+1)
}

// Sliding admits quota hits in any window of length d.
func Sliding(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Sliding(d)}
}

// Cells admits quota hits in any window of length d, counted in 60 cells: for
// very high rates. It denies up to one cell's hits early.
func Cells(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Cells(d, 0)}
}

// Fixed admits quota hits in a window that starts with the first hit and lasts
// d; up to twice as many can pass across an edge.
func Fixed(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Window: window.Fixed(d)}
}

// Calendar admits quota hits in each minute, hour, day, week, month or year of
// zone; nil is UTC.
func Calendar(quota int64, p window.Period, zone *time.Location) Limit {
	return Limit{Quota: quota, Window: window.Calendar(p, zone)}
}

// Bucket admits quota hits in d on average and burst at once; burst = 0 means
// the quota, burst = 1 spaces hits evenly.
func Bucket(quota int64, d time.Duration, burst int64) Limit {
	return Limit{Quota: quota, Window: window.Bucket(d, burst)}
}

// Members admits quota different members in any window of length d.
func Members(quota int64, d time.Duration) Limit {
	return Limit{Quota: quota, Measure: window.Distinct, Window: window.Sliding(d)}
}
