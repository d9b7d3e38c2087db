package measure

import (
	"runtime"
	"time"
)

// Expiry has the numbers of a table whose keys have all expired.
type Expiry struct {
	Left float64       // share of the memory that is still in use
	Slow time.Duration // the slowest call of the light traffic meanwhile
}

// Expire fills a limiter with a short window, waits until all keys have expired,
// and then calls it for a few other keys, every 10 µs, for the time d.
func Expire(allow func(string) bool, keys, others Keys, window, d time.Duration) Expiry {
	empty := Heap()
	Fill(allow, keys, 1)
	full := Heap()
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
	rest := Heap()
	runtime.KeepAlive(allow) // else it may be collected before
	left := max(0, rest-empty) / (full - empty)
	if full-empty < float64(keys.Len()) { // it kept no keys
		left = None()
	}
	return Expiry{Left: left, Slow: slow}
}
