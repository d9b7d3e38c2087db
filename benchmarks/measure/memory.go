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

// Heap is how many bytes are in use after the garbage was collected.
func Heap() float64 {
	runtime.GC()
	runtime.GC() // what only finalizers and pools held goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// Collection is how long one collection of the garbage takes, in milliseconds.
func Collection() float64 {
	var turns []float64
	for range 5 {
		start := time.Now()
		runtime.GC()
		turns = append(turns, float64(time.Since(start))/float64(time.Millisecond))
	}
	return median(turns)
}
