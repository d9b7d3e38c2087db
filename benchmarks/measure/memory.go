package measure

import (
	"runtime"
	"strings"
	"time"
)

// Fill asks about every key as often as hits says. Each key is given in memory
// of its own, as programs make them for a request: who keeps it pays for it.
func Fill(allow func(string) bool, keys Keys, hits int) {
	for range max(1, hits) {
		for i := range keys.Len() {
			allow(strings.Clone(keys.At(uint32(i))))
		}
	}
}

// Heap is how many bytes are in use after the garbage was collected, and how
// many milliseconds one collection takes: the median of three. Pools and
// finalizers, which end some peers' goroutines, hold things until a second and
// a third time.
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
