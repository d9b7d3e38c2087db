package lease

import "math"

const (
	// perWindow is how many leases of the usual length a window has.
	perWindow = 32
	// trips is how many round trips a lease lasts at least. It arrives after one of them, and the next one, which
	// is asked for then, after two; the third is for the margin.
	trips = 3
	// longest is the part of a window that a lease lasts at most, as a divisor.
	longest = 3
	// near is the part of a window that a lease lasts at most if the store is near, as a divisor: see [Quota.Far].
	near = 16

	// leastUnits is how many units of a quota each instance must be able to lease, on average, for a key to be
	// leased at all.
	leastUnits = 4

	second      = Time(1_000_000_000)
	millisecond = second / 1000

	// rateError is the part by which the rates of two clocks may differ, as a divisor.
	rateError = 1000

	leastSample = 5 * millisecond
	// forgets is the time in which an estimate that was too high falls to 1/e of what it was too much.
	forgets = 50 * millisecond
)

// LeastQuota returns the smallest quota that nodes instances can lease. Parts of a smaller one would be so small that
// the store is asked about as often as without leases.
func LeastQuota(nodes int64) int64 { return leastUnits * perWindow * nodes }

// Quota is what the instances share.
type Quota struct {
	Quota  int64
	Window Time
	Nodes  int64
}

// Length returns how long a lease lasts if the store answers within roundTrip: a 32nd of the
// window, and at most a second, unless the round trip needs more. It returns 0 if a lease would last longer than
// a third of the window, because then too much of the quota would be unused.
func (q Quota) Length(roundTrip Time) Time {
	n := max(min(q.Window/perWindow, second), trips*roundTrip)
	if n > q.Window/longest {
		return 0
	}
	return n
}

// FarthestTrip returns the longest round trip with which keys are leased.
func (q Quota) FarthestTrip() Time { return q.Window / (trips * longest) }

// Far reports whether the store is so far away that much of the quota would be unused if all of it were leased,
// because it is counted as used for a round trip longer than a window. Then the store should decide
// what no lease covers, at once.
func (q Quota) Far(roundTrip Time) bool { return trips*roundTrip > q.Window/near }

// Demand is an estimate of the hits that are asked for at one instance.
type Demand struct {
	rate  float64 // hits in a nanosecond
	since Time    // of the last sample
	until int64   // hits by then
}

// Start begins with hits in a length of time.
func (d *Demand) Start(now Time, hits int64, in Time) {
	*d = Demand{rate: float64(hits) / float64(max(in, 1)), since: now}
}

// Sample is called with the number of hits up to now. It follows a rise at once and a fall slowly.
func (d *Demand) Sample(now Time, hits int64) {
	took := now - d.since
	if took < leastSample && hits-d.until < int64(d.rate*float64(leastSample)) {
		return
	}
	rate := float64(hits-d.until) / float64(max(took, leastSample))
	if rate < d.rate {
		keep := math.Exp(-float64(took) / float64(forgets))
		rate = keep*d.rate + (1-keep)*rate
	}
	*d = Demand{rate, now, hits}
}

// Skip makes the time up to now count for nothing: hits were refused, and not counted.
func (d *Demand) Skip(now Time, hits int64) { d.since, d.until = now, hits }

// In returns the hits that are expected in a length of time.
func (d *Demand) In(t Time) int64 { return int64(math.Ceil(d.rate * float64(max(t, 0)))) }

// Terms returns what to ask for at now by who knows v. roundTrip is how long the store takes to answer, waiting the number of
// hits of calls that wait for the lease. It returns false if leases of the quota would be too long.
func (d *Demand) Terms(q Quota, v *View, now, roundTrip Time, waiting int64) (t Terms, ok bool) {
	t.Length = q.Length(roundTrip)
	t.Margin = t.Length/rateError + 1 + min(t.Length/16+roundTrip/2, t.Length/4)
	t.Lead = t.Length/8 + roundTrip
	lasts, few := t.Length-t.Margin, q.Quota/max(2*int64(q.Window/max(t.Length, 1))*q.Nodes, 1)
	if q.Far(roundTrip) {
		lasts, few = lasts-roundTrip, 1 // nothing waits for it, and a refusal only says that the quota is used up
	}
	t.Want = max(d.In(lasts)*5/4-d.covered(v, now, roundTrip), 2*waiting, 1)
	t.Min = max(min(t.Want/2, few), 1)
	t.Div = q.Nodes
	return t, t.Length > 0
}

// covered returns how many hits that are expected after a round trip have a lease.
func (d *Demand) covered(v *View, now, roundTrip Time) (n int64) {
	before := d.In(roundTrip)
	for _, l := range v.leases {
		if l != nil {
			left := l.Left()
			n += max(min(left-before, d.In(l.End-now-roundTrip)), 0)
			before = max(before-left, 0)
		}
	}
	return n
}
