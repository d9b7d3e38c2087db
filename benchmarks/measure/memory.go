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

// Heap returns the bytes in use after a garbage collection, and the milliseconds
// of one collection, as the median of three. Pools and finalizers, which end some
// peers' goroutines, hold memory until a second and a third collection.
func Heap() (bytes, collection float64) {
	var turns []float64
	for range 3 {
		start := time.Now()
		runtime.GC()
		turns = append(turns, float64(time.Since(start))/float64(time.Millisecond))
		time.Sleep(5 * time.Millisecond)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), median(turns)
}
