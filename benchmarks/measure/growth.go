package measure

import (
	"runtime"
	"time"
)

// Subject is a table whose single calls are timed.
type Subject struct {
	Name   string
	Allow  func(key string) bool
	Expire func()     // makes all its keys expire at once
	Len    func() int // how many keys it keeps
	Close  func()
}

// Growth are the times of single calls while a table fills, and while all that
// is in it expires.
type Growth struct {
	Grow, Shrink Calls
	Left         float64 // share of the keys that are kept at the end
}

// Calls are the times of single calls.
type Calls struct {
	Histogram
	// Busy is how many of the slow ones were slow for what the program did:
	// for the others the thread was not running, and the machine had its time.
	Busy uint64
}

// Grow asks about every key once, lets all expire, and then asks about a few
// of them half as often as there were keys.
func Grow(s Subject, keys Keys) *Growth {
	g := new(Growth)
	g.Grow.time(keys.Len(), func(i int) { s.Allow(keys.At(uint32(i))) })
	grown := s.Len()
	s.Expire()
	few := min(keys.Len(), 1000)
	g.Shrink.time(keys.Len()/2, func(i int) { s.Allow(keys.At(uint32(i % few))) })
	g.Left = float64(s.Len()) / float64(max(1, grown))
	s.Close()
	return g
}

// time times n calls, each from the end of the one before: the clock is read
// once a call, and what the machine does to the loop is in the times. What the
// thread itself has run is looked at every 64 calls, since that costs more.
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
