package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Speed has the cost of calls.
type Speed struct {
	Nanoseconds float64 // wall-clock time per call of all goroutines together
	Allocs      float64 // allocations per call
	Admitted    float64 // share of the calls
}

// batch is the number of calls between two reads of the clock.
const batch = 512

// Measure calls allow for about the time d, from as many goroutines as cores. The
// program uses no more cores meanwhile. Each goroutine starts at another place in
// the series of keys.
func Measure(allow func(string) bool, keys Keys, draw Draw, cores int, d time.Duration) Speed {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var (
		before, after   runtime.MemStats
		calls, admitted atomic.Int64
		all             sync.WaitGroup
		begin           = make(chan time.Time)
	)
	for worker := range cores {
		all.Go(func() {
			at := worker * (len(draw) / cores)
			n, yes := 0, 0
			for start := <-begin; time.Since(start) < d; n += batch {
				yes += some(allow, keys, draw, at+n)
			}
			calls.Add(int64(n))
			admitted.Add(int64(yes))
		})
	}
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range cores {
		begin <- start
	}
	all.Wait()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(calls.Load())
	return Speed{
		Nanoseconds: float64(took) / n,
		Allocs:      float64(after.Mallocs-before.Mallocs) / n,
		Admitted:    float64(admitted.Load()) / n,
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
