package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Speed is what calls cost.
type Speed struct {
	Nanoseconds float64 // of the wall clock, for one call of all goroutines together
	Allocs      float64 // allocations a call
	Admitted    float64 // share of the calls
}

// batch is how many calls pass between two looks at the clock.
const batch = 512

// Measure calls allow for about d from as many goroutines as cores, and lets
// the program use no more cores than that. Each goroutine starts elsewhere in
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

// some makes a batch of calls and counts those that were admitted.
func some(allow func(string) bool, keys Keys, draw Draw, at int) (admitted int) {
	mask := len(draw) - 1
	for i := at; i < at+batch; i++ {
		if allow(keys.At(draw[i&mask])) {
			admitted++
		}
	}
	return admitted
}
