package measure

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Subject is a table whose single calls are timed.
type Subject struct {
	Name   string
	Times  int // calls for each key while it fills
	Allow  func(key string) bool
	Expire func()     // makes all keys expire at once; nil: there is no table
	Len    func() int // number of keys
	Close  func()
}

// Calls has the times of single calls.
type Calls struct {
	*hdrhistogram.Histogram
	// Slow is the number of calls that took over a millisecond, and Busy of those during which the thread was
	// running. During the others the machine ran something else. A thread of a virtual machine counts as running
	// while the host gets memory for it.
	Slow, Busy float64
}

// Grow calls s for every key, makes all keys expire, and then makes half as many calls as there are keys, for a
// few of them. left is the share of the keys that remain.
func Grow(s Subject, keys Keys) (grow, shrink Calls, left float64) {
	grow = timed(keys.Len()*s.Times, func(i int) { s.Allow(keys.At(uint32(i % keys.Len()))) })
	grown, few := 1, min(keys.Len(), 1000)
	if s.Expire != nil {
		defer s.Close()
		grown = s.Len()
		s.Expire()
	}
	shrink = timed(keys.Len()/2, func(i int) { s.Allow(keys.At(uint32(i % few))) })
	if s.Expire != nil {
		left = float64(s.Len()) / float64(grown)
	}
	return grow, shrink, left
}

// timed times n calls, each from the end of the call before. It reads the clock once per call, so the times include
// interruptions of the loop. It reads the thread's time only every 64 calls, because that is more expensive.
func timed(n int, call func(i int)) Calls {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, slow := Calls{Histogram: NewHistogram()}, false
	ran, last := threadTime(), time.Now()
	for i := range n {
		call(i)
		now := time.Now()
		took := now.Sub(last)
		_ = c.RecordValue(int64(took)) // no call takes an hour
		if took > time.Millisecond {
			c.Slow++
			slow = true
		}
		if i%64 == 63 {
			until := threadTime()
			if slow && until-ran > time.Millisecond {
				c.Busy++
			}
			ran, slow, now = until, false, time.Now()
		}
		last = now
	}
	return c
}

// threadTime returns how long the calling thread has been running, or the elapsed time if the system does not provide
// it.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD, which only Linux has
	var u unix.Rusage
	if err := unix.Getrusage(thread, &u); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Trace has the arrival times of requests, in order.
type Trace struct {
	Name string
	At   []time.Duration
}

// Traces returns traces of n arrivals each, for a limit of quota in window.
func Traces(n, quota int, window time.Duration) []Trace {
	var traces []Trace
	trace := func(name string, seed uint64, arrive func(rng *rand.Rand, at func(time.Duration)) (more func())) {
		var all []time.Duration
		more := arrive(rand.New(rand.NewPCG(seed, seed+1)), func(d time.Duration) { all = append(all, d.Truncate(time.Microsecond)) }) // weir's precision
		for len(all) < n {
			more()
		}
		all = all[:n]
		slices.Sort(all)
		traces = append(traces, Trace{name, all})
	}
	part := func(share float64) time.Duration { return time.Duration(share * float64(window)) }
	// No arrivals for most of every third window, a quota in its last fifth, and twice the quota in most of the
	// next window.
	trace("bursts at boundaries", 5, func(rng *rand.Rand, at func(time.Duration)) func() {
		edge := window
		return func() {
			for range quota {
				at(edge - part(0.2*rng.Float64()))
			}
			for range 2 * quota {
				at(edge + part(0.7*rng.Float64()))
			}
			edge += 3 * window
		}
	})
	// Bursts of up to half a quota, at twice the limit's rate.
	trace("random", 7, func(rng *rand.Rand, at func(time.Duration)) func() {
		now := time.Duration(0)
		return func() {
			size := 1 + rng.IntN(quota/2)
			now += part(rng.ExpFloat64() * float64(size) / float64(2*quota))
			for range size {
				at(now + time.Duration(rng.Int64N(int64(window/100))))
			}
		}
	})
	// Single arrivals a little above the limit's rate, with a burst of a quota in every tenth window.
	trace("light", 9, func(rng *rand.Rand, at func(time.Duration)) func() {
		now, burst := time.Duration(0), 10*window
		return func() {
			now += part(rng.ExpFloat64() / (1.1 * float64(quota)))
			at(now)
			if now >= burst {
				burst += 10 * window
				for range quota {
					at(now)
				}
			}
		}
	})
	// An attack on a limiter that was idle for two windows. One hit starts windows that begin with a hit. A burst
	// fills the quota, each time later in the window. A stream then takes what a bucket leaks. A last burst comes
	// a tenth of a window before the first one leaves: a limiter that forgot it early admits too much.
	trace("aimed", 11, func(_ *rand.Rand, at func(time.Duration)) func() {
		attack, attacks := 0, max(1, n/(11*quota/4))
		return func() {
			start := time.Duration(attack) * 4 * window
			burst := start + time.Duration(attack%attacks)*window/time.Duration(attacks)
			attack++
			at(start)
			for range quota - 1 {
				at(burst)
			}
			evenly := func(n int, start, d time.Duration) { // without the ends
				for i := range n {
					at(start + d*time.Duration(i+1)/time.Duration(n+1))
				}
			}
			evenly(3*quota/4, burst, window*9/10)
			evenly(quota, burst+window*9/10, window/10)
		}
	})
	return traces
}

// Oracle compares the answers of a limiter with an exact log of the admitted hits. A hit at t is inside the window
// that ends at now if now-window < t ≤ now.
type Oracle struct {
	quota  int
	window time.Duration

	log, ideal hits // hits that were admitted; that an exact limiter would have admitted

	worst, asked, wrong, admitted, ideally float64
}

// hits are the hits inside the window, oldest first.
type hits []time.Duration

// since drops the hits before a window that began at start.
func (h hits) since(start time.Duration) hits {
	for len(h) > 0 && h[0] <= start {
		h = h[1:]
	}
	return h
}

// NewOracle returns an oracle with an empty log.
func NewOracle(quota int, window time.Duration) *Oracle { return &Oracle{quota: quota, window: window} }

// See adds the limiter's answer at now. now must not go back.
func (o *Oracle) See(now time.Duration, admitted bool) {
	o.log, o.ideal = o.log.since(now-o.window), o.ideal.since(now-o.window)
	o.asked++
	switch {
	case admitted:
		o.log = append(o.log, now)
		o.worst = max(o.worst, float64(len(o.log)))
		o.admitted++
	case len(o.log) < o.quota:
		o.wrong++
	}
	if len(o.ideal) < o.quota {
		o.ideal = append(o.ideal, now)
		o.ideally++
	}
}

// Over returns the maximum number of hits admitted in any window, divided by the quota. 1 is ideal.
func (o *Oracle) Over() float64 { return o.worst / float64(o.quota) }

// Admitted returns the admitted hits, divided by those that an exact limiter would have admitted. 1 is ideal.
func (o *Oracle) Admitted() float64 { return o.admitted / o.ideally }

// WronglyDenied returns the share of all requests that were denied although the window held fewer hits than the
// quota.
func (o *Oracle) WronglyDenied() float64 { return o.wrong / o.asked }
