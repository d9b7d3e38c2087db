package measure

import "time"

// Oracle holds the answers of a limiter to an exact log of what it admitted. A
// hit is inside the window that ends at now when now-window < t ≤ now.
type Oracle struct {
	quota  int
	window time.Duration

	log   []time.Duration // of what was admitted and is inside the window
	worst int
	asked int
	wrong int
}

// NewOracle starts with an empty log.
func NewOracle(quota int, window time.Duration) *Oracle {
	return &Oracle{quota: quota, window: window}
}

// See tells o what the limiter said at now, which never goes back.
func (o *Oracle) See(now time.Duration, admitted bool) {
	gone := 0
	for gone < len(o.log) && o.log[gone] <= now-o.window {
		gone++
	}
	o.log = o.log[gone:]
	o.asked++
	switch {
	case admitted:
		o.log = append(o.log, now)
		o.worst = max(o.worst, len(o.log))
	case len(o.log) < o.quota:
		o.wrong++
	}
}

// Over is the most that was admitted in any window, in quotas: 1 is right.
func (o *Oracle) Over() float64 { return float64(o.worst) / float64(o.quota) }

// WronglyDenied is the share of all requests that were denied although they
// would have fitted.
func (o *Oracle) WronglyDenied() float64 { return float64(o.wrong) / float64(o.asked) }
