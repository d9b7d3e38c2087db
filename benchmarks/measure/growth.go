package measure

import (
	"runtime"
	"time"
)

// Subject is a table whose single calls are timed.
type Subject struct {
	Name   string
	Times  int // calls for each key while it fills; 0 means 1
	Allow  func(key string) bool
	Expire func()     // makes all keys expire at once
	Len    func() int // number of keys
	Close  func()
}

// Growth has the times of single calls while a table fills, and while all of its
// keys expire.
type Growth struct {
	Grow, Shrink Calls
	Left         float64 // share of the keys that remain at the end
}

// Calls has the times of single calls.
type Calls struct {
	Histogram
	// Busy is the number of slow calls during which the thread was running. During
	// the other slow calls the machine ran something else. A thread of a virtual machine
	// counts as running while the host gets memory for it.
	Busy uint64
}

// Grow calls s for every key, makes all keys expire, and then makes half as
// many calls as there are keys, for a few of them.
func Grow(s Subject, keys Keys) *Growth {
	g := new(Growth)
	g.Grow.time(keys.Len()*max(1, s.Times), func(i int) { s.Allow(keys.At(uint32(i % keys.Len()))) })
	grown := s.Len()
	s.Expire()
	few := min(keys.Len(), 1000)
	g.Shrink.time(keys.Len()/2, func(i int) { s.Allow(keys.At(uint32(i % few))) })
	g.Left = float64(s.Len()) / float64(max(1, grown))
	s.Close()
	return g
}

// time times n calls, each from the end of the call before. It reads the clock
// once per call, so the times include what the machine does to the loop. It reads
// the thread's time only every 64 calls, because that costs more.
func (c *Calls) time(n int, call func(i int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slow := false
	ran, last := threadTime(), time.Now()
	for i := range n {
		call(i)
		now := time.Now()
		took := now.Sub(last)
		c.Add(took)
		slow = slow || took > Slow
		if i%64 == 63 {
			until := threadTime()
			if slow && until-ran > Slow {
				c.Busy++
			}
			ran, slow = until, false
			now = time.Now()
		}
		last = now
	}
}
