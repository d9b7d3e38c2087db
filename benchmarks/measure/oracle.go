package measure

import "time"

// Oracle holds the answers of a limiter to an exact log of what it admitted. A
// hit is inside the window that ends at now when now-window < t ≤ now.
type Oracle struct {
	quota  int
	window time.Duration

	log, ideal hits // of what was admitted; of what an exact limiter would have

	worst, asked, wrong int
	admitted, ideally   int
}

// hits are those inside the window, oldest first.
type hits []time.Duration

// since drops what is not inside the window that began at start.
func (h hits) since(start time.Duration) hits {
	gone := 0
	for gone < len(h) && h[gone] <= start {
		gone++
	}
	return h[gone:]
}

// NewOracle starts with an empty log.
func NewOracle(quota int, window time.Duration) *Oracle {
	return &Oracle{quota: quota, window: window}
}

// See tells o what the limiter said at now, which never goes back.
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

// Over is the most that was admitted in any window, in quotas: 1 is right.
func (o *Oracle) Over() float64 { return float64(o.worst) / float64(o.quota) }

// Admitted is all that was admitted, in parts of what an exact limiter would
// have admitted of the same requests: 1 is right.
func (o *Oracle) Admitted() float64 { return float64(o.admitted) / float64(o.ideally) }

// WronglyDenied is the share of all requests that were denied although less
// than the quota had been admitted in the window.
func (o *Oracle) WronglyDenied() float64 { return float64(o.wrong) / float64(o.asked) }
