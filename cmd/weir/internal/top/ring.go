package top

import (
	"slices"
	"time"

	"github.com/weirhq/weir/store"
)

// Reason is why a rule denied a take.
type Reason string

const (
	ReasonLimit   Reason = "limit"   // the hits did not fit into the quota
	ReasonBan     Reason = "ban"     // the key was banned before
	ReasonHolds   Reason = "holds"   // the key had the most holds
	ReasonVerdict Reason = "verdict" // the rule denies whatever matches it
	ReasonOutage  Reason = "outage"  // the store did not answer; on_outage denied
)

// Denial is one take that one rule denied, or would have denied in shadow mode.
type Denial struct {
	Time    time.Time
	Rule    string
	Key     string // empty for a verdict and after an outage
	Reason  Reason
	Outcome string // of the decision
	Shadow  bool   // the rule is in shadow mode and did not deny

	// Hits is the number of hits that the take asked of the rule. Used, before the
	// take, and Quota are the rule's numbers. All are 0 without numbers.
	Hits, Used, Quota int64

	// BannedUntil is the end of the ban of a key that is banned, be it because of
	// this take. Otherwise it is zero.
	BannedUntil time.Time

	// RetryAfter is the wait until the same hits fit, or [window.Never].
	RetryAfter time.Duration

	// Cause is the reason of an outage, and empty without one.
	Cause store.Reason
}

// ring keeps the newest denials of a rule. The zero value is empty.
type ring struct {
	denials []Denial
	k       int // the most denials; the zero value has 0
	next    int // the place of the next denial, when there are k
}

// add adds d, in place of the oldest of k denials.
func (r *ring) add(d Denial, k int) {
	if k != r.k {
		r.resize(k)
	}
	if len(r.denials) < k {
		r.denials = append(r.denials, d)
		return
	}
	r.denials[r.next] = d
	r.next = (r.next + 1) % k
}

// resize makes room for k denials, and keeps the newest ones.
func (r *ring) resize(k int) {
	var kept []Denial
	r.newest(func(d *Denial) bool {
		kept = append(kept, *d)
		return len(kept) < k
	})
	slices.Reverse(kept)
	*r = ring{denials: kept, k: k}
}

// newest calls yield for each denial, the newest one first, until yield returns
// false.
func (r *ring) newest(yield func(*Denial) bool) {
	for i := range r.denials {
		at := (r.next + len(r.denials) - 1 - i) % len(r.denials)
		if !yield(&r.denials[at]) {
			return
		}
	}
}
