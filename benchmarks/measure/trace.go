package measure

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Trace has the arrival times of requests, in order.
type Trace struct {
	Name string
	At   []time.Duration
}

// Traces returns traces of n arrivals each, for a limit of quota in window.
func Traces(n, quota int, window time.Duration) []Trace {
	return []Trace{
		{"bursts at boundaries", boundaries(n, quota, window)},
		{"random", random(n, quota, window)},
		{"light", light(n, quota, window)},
		{"aimed", aimed(n, quota, window)},
	}
}

// boundaries returns a trace without arrivals for most of every third window, with
// a quota in its last fifth, and with twice the quota in most of the next window.
func boundaries(n, quota int, window time.Duration) []time.Duration {
	var at []time.Duration
	rng := rand.New(rand.NewPCG(5, 6))
	for edge := window; len(at) < n; edge += 3 * window {
		for range quota {
			at = append(at, edge-time.Duration(rng.Float64()*0.2*float64(window)))
		}
		for range 2 * quota {
			at = append(at, edge+time.Duration(rng.Float64()*0.7*float64(window)))
		}
	}
	return inOrder(at[:n])
}

// random returns bursts of up to half a quota, at twice the limit's rate.
func random(n, quota int, window time.Duration) []time.Duration {
	rng := rand.New(rand.NewPCG(7, 8))
	var at []time.Duration
	for now := time.Duration(0); len(at) < n; {
		size := 1 + rng.IntN(quota/2)
		now += time.Duration(rng.ExpFloat64() * float64(size) / float64(2*quota) * float64(window))
		for range size {
			at = append(at, now+time.Duration(rng.Int64N(int64(window/100))))
		}
	}
	return inOrder(at[:n])
}

// light returns single arrivals a little above the limit's rate, with a burst of a
// quota in every tenth window.
func light(n, quota int, window time.Duration) []time.Duration {
	rng := rand.New(rand.NewPCG(9, 10))
	var at []time.Duration
	now, burst := time.Duration(0), 10*window
	for len(at) < n {
		now += time.Duration(rng.ExpFloat64() / (1.1 * float64(quota)) * float64(window))
		at = append(at, now)
		if now >= burst {
			burst += 10 * window
			for range quota {
				at = append(at, now)
			}
		}
	}
	return inOrder(at[:n])
}

// aimed returns an attack on a limiter that was idle for two windows. One hit starts windows
// that begin with a hit. A burst fills the quota, each time later in the window.
// A stream then takes what a bucket leaks. A last burst comes a tenth of a window
// before the first one leaves: a limiter that forgot it early admits too much.
func aimed(n, quota int, window time.Duration) []time.Duration {
	var at []time.Duration
	attacks := max(1, n/(11*quota/4))
	for i := 0; len(at) < n; i++ {
		start := time.Duration(i) * 4 * window
		burst := start + time.Duration(i%attacks)*window/time.Duration(attacks)
		at = append(at, start)
		for range quota - 1 {
			at = append(at, burst)
		}
		at = evenly(at, 3*quota/4, burst, window*9/10)
		at = evenly(at, quota, burst+window*9/10, window/10)
	}
	return inOrder(at[:n])
}

// evenly appends n evenly spaced arrivals in the time d after start, without the
// ends.
func evenly(at []time.Duration, n int, start, d time.Duration) []time.Duration {
	for i := range n {
		at = append(at, start+d*time.Duration(i+1)/time.Duration(n+1))
	}
	return at
}

// inOrder sorts arrivals and truncates them to microseconds, weir's precision.
func inOrder(at []time.Duration) []time.Duration {
	for i := range at {
		at[i] = at[i].Truncate(time.Microsecond)
	}
	slices.Sort(at)
	return at
}
