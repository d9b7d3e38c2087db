package measure

import (
	"runtime"
	"strings"
	"time"
)

// Fill calls allow hits times for every key. Each key has memory of its own, as
// keys of requests do, so a limiter that keeps the key pays for it.
func Fill(allow func(string) bool, keys Keys, hits int) {
	for range max(1, hits) {
		for i := range keys.Len() {
			allow(strings.Clone(keys.At(uint32(i))))
		}
	}
}

// Heap returns the bytes in use after a garbage collection. Pools and finalizers, which
// end some peers' goroutines, hold memory until a second and a third collection.
func Heap() (bytes float64) {
	for range 3 {
		runtime.GC()
		time.Sleep(betweenCollections)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// How many collections are timed: at least leastCollections, and up to mostCollections
// within collectionTime.
const (
	leastCollections   = 3
	mostCollections    = 15
	collectionTime     = 200 * time.Millisecond
	betweenCollections = 5 * time.Millisecond
)

// Collection returns the milliseconds of one garbage collection on one core, as the median
// of several. On more cores a collection of a small heap mostly waits for threads to wake up,
// and sweeping wakes one up after each span of memory: on an empty heap the median of three
// was anything from 0.3 to 3 ms, and is 0.12 to 0.18 ms on one core.
func Collection() float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns []float64
	for begin := time.Now(); len(turns) < leastCollections || len(turns) < mostCollections && time.Since(begin) < collectionTime; {
		start := time.Now()
		runtime.GC()
		turns = append(turns, float64(time.Since(start))/float64(time.Millisecond))
		time.Sleep(betweenCollections)
	}
	return median(turns)
}
