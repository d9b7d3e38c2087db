package lease

import "math"

const (
	// perWindow is how many leases of the usual length a window has.
	perWindow = 32
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
// an eighth of the window, because then too much of the quota would be unused.
func (q Quota) Length(roundTrip Time) Time {
	n := max(min(q.Window/perWindow, second), roundTrip+roundTrip/2)
	if n > q.Window/8 {
		return 0
	}
	return n
}

// FarthestTrip returns the longest round trip with which keys are leased.
func (q Quota) FarthestTrip() Time { return q.Window / 12 }

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

// Terms returns what to ask for. roundTrip is how long the store takes to answer, waiting the number of hits of
// calls that wait for the lease. It returns false if leases of the quota would be too long.
func (d *Demand) Terms(q Quota, roundTrip Time, waiting int64) (t Terms, ok bool) {
	t.Length = q.Length(roundTrip)
	t.Margin = t.Length/rateError + 1 + min(t.Length/16+roundTrip/2, t.Length/4)
	t.Lead = t.Length/16 + roundTrip
	t.Want = max(d.In(max(t.Length, roundTrip)*5/4), 2*waiting, 1)
	few := q.Quota / max(2*int64(q.Window/max(t.Length, 1))*q.Nodes, 1)
	t.Min = max(min(t.Want/2, few), 1)
	t.Div = q.Nodes
	return t, t.Length > 0
}
