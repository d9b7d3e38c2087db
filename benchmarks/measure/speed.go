package measure

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Speed has the cost of calls.
type Speed struct {
	Nanoseconds float64 // wall-clock time per call of all goroutines together
	Allocs      float64 // allocations per call
	Admitted    float64 // share of the calls
	Waiting     float64 // share of the goroutines' time in which they waited for a mutex
}

// batch is the number of calls between two reads of the clock.
const batch = 512

// Measure calls allow for about the time d, from as many goroutines as cores. The
// program uses no more cores meanwhile. Each goroutine starts at another place in
// the series of keys.
func Measure(allow func(string) bool, keys Keys, draw Draw, cores int, d time.Duration) Speed {
	return Crowd(allow, keys, draw, cores, cores, d)
}

// Crowd is like Measure, with a given number of goroutines.
func Crowd(allow func(string) bool, keys Keys, draw Draw, cores, goroutines int, d time.Duration) Speed {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var (
		before, after   runtime.MemStats
		calls, admitted atomic.Int64
		all             sync.WaitGroup
		begin           = make(chan time.Time)
	)
	for worker := range goroutines {
		all.Go(func() {
			at := worker * (len(draw) / goroutines)
			n, yes := 0, 0
			for start := <-begin; time.Since(start) < d; n += batch {
				yes += some(allow, keys, draw, at+n)
			}
			calls.Add(int64(n))
			admitted.Add(int64(yes))
		})
	}
	runtime.ReadMemStats(&before)
	waited := mutexWait()
	start := time.Now()
	for range goroutines {
		begin <- start
	}
	all.Wait()
	took := time.Since(start)
	waited = mutexWait() - waited
	runtime.ReadMemStats(&after)
	n := float64(calls.Load())
	return Speed{
		Nanoseconds: float64(took) / n,
		Allocs:      float64(after.Mallocs-before.Mallocs) / n,
		Admitted:    float64(admitted.Load()) / n,
		Waiting:     min(1, waited/(took.Seconds()*float64(goroutines))), // the runtime estimates it from samples
	}
}

// some makes a batch of calls and returns how many were admitted.
func some(allow func(string) bool, keys Keys, draw Draw, at int) (admitted int) {
	mask := len(draw) - 1
	for i := at; i < at+batch; i++ {
		if allow(keys.At(draw[i&mask])) {
			admitted++
		}
	}
	return admitted
}

// mutexWait returns the seconds that goroutines have waited for mutexes, in sum.
// Time that a goroutine spins before it waits is not in it.
func mutexWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}
