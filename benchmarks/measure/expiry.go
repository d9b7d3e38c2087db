package measure

import (
	"runtime"
	"time"
)

// Expiry is what becomes of a table whose keys have all expired.
type Expiry struct {
	Left float64       // share of the memory that is still in use
	Slow time.Duration // the slowest call of the light traffic meanwhile
}

// Expire fills a limiter whose window is short, waits until all of it has
// expired, and then asks it about a few other keys, a call every 10 µs, for as
// long as d.
func Expire(allow func(string) bool, keys, others Keys, window, d time.Duration) Expiry {
	empty, _ := Heap()
	Fill(allow, keys, 1)
	full, _ := Heap()
	time.Sleep(window)

	var slow time.Duration
	const calls = 100 // between two pauses
	for start, i := time.Now(), 0; time.Since(start) < d; time.Sleep(calls * 10 * time.Microsecond) {
		for range calls {
			before := time.Now()
			allow(others.At(uint32(i % others.Len())))
			slow = max(slow, time.Since(before))
			i++
		}
	}
	rest, _ := Heap()
	runtime.KeepAlive(allow) // or all of it may be collected already
	left := max(0, rest-empty) / (full - empty)
	if full-empty < float64(keys.Len()) { // it kept nothing worth the name
		left = None()
	}
	return Expiry{Left: left, Slow: slow}
}
