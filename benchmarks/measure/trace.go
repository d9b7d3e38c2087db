package measure

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Trace is when requests arrive, in order.
type Trace struct {
	Name string
	At   []time.Duration
}

// Traces are n arrivals each, against a limit of quota in window.
func Traces(n, quota int, window time.Duration) []Trace {
	return []Trace{
		{"bursts at boundaries", boundaries(n, quota, window)},
		{"random", random(n, quota, window)},
		{"light", light(n, quota, window)},
		{"aimed", aimed(n, quota, window)},
	}
}

// boundaries puts a quota into the last twentieth of each window and another
// into the first of the next.
func boundaries(n, quota int, window time.Duration) []time.Duration {
	var at []time.Duration
	rng := rand.New(rand.NewPCG(5, 6))
	for edge := window; len(at) < n; edge += window {
		for range 2 * quota {
			at = append(at, edge+time.Duration((rng.Float64()-0.5)*float64(window)/10))
		}
	}
	return inOrder(at[:n])
}

// random are bursts of up to half a quota, at twice the limit's rate.
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

// light is a little above the limit's rate, one by one, with a burst of a
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

// aimed asks a limiter that has rested for three windows. One hit starts what
// starts with a hit; a burst fills the quota, each time later within the
// window; and a stream of hits finds whatever is let in too early.
func aimed(n, quota int, window time.Duration) []time.Duration {
	var at []time.Duration
	attacks := max(1, n/(5*quota/2))
	for i := 0; len(at) < n; i++ {
		start := time.Duration(i) * 5 * window
		burst := start + time.Duration(i%attacks)*window/time.Duration(attacks)
		at = append(at, start)
		for range quota - 1 {
			at = append(at, burst)
		}
		for hit := range 3 * quota / 2 {
			at = append(at, burst+time.Duration(hit+1)*window/time.Duration(3*quota/2+1))
		}
	}
	return inOrder(at[:n])
}

// inOrder sorts arrivals, cut to whole microseconds: weir's finest time.
func inOrder(at []time.Duration) []time.Duration {
	for i := range at {
		at[i] = at[i].Truncate(time.Microsecond)
	}
	slices.Sort(at)
	return at
}
