package measure

import "time"

// Oracle compares the answers of a limiter with an exact log of the admitted hits.
// A hit at t is inside the window that ends at now if now-window < t ≤ now.
type Oracle struct {
	quota  int
	window time.Duration

	log, ideal hits // hits that were admitted; that an exact limiter would have admitted

	worst, asked, wrong int
	admitted, ideally   int
}

// hits are the hits inside the window, oldest first.
type hits []time.Duration

// since drops the hits before a window that began at start.
func (h hits) since(start time.Duration) hits {
	gone := 0
	for gone < len(h) && h[gone] <= start {
		gone++
	}
	return h[gone:]
}

// NewOracle returns an oracle with an empty log.
func NewOracle(quota int, window time.Duration) *Oracle {
	return &Oracle{quota: quota, window: window}
}

// See adds the limiter's answer at now. now must not go back.
func (o *Oracle) See(now time.Duration, admitted bool) {
	o.log, o.ideal = o.log.since(now-o.window), o.ideal.since(now-o.window)
	o.asked++
	switch {
	case admitted:
		o.log = append(o.log, now)
		o.worst = max(o.worst, len(o.log))
		o.admitted++
	case len(o.log) < o.quota:
		o.wrong++
	}
	if len(o.ideal) < o.quota {
		o.ideal = append(o.ideal, now)
		o.ideally++
	}
}

// Over returns the most hits admitted in any window, divided by the quota. 1 is
// right.
func (o *Oracle) Over() float64 { return float64(o.worst) / float64(o.quota) }

// Admitted returns the admitted hits, divided by those that an exact limiter would
// have admitted. 1 is right.
func (o *Oracle) Admitted() float64 { return float64(o.admitted) / float64(o.ideally) }

// WronglyDenied returns the share of all requests that were denied although the
// window held fewer hits than the quota.
func (o *Oracle) WronglyDenied() float64 { return float64(o.wrong) / float64(o.asked) }
