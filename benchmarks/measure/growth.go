package measure

import (
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
	Grow, Shrink Histogram
	Left         float64 // share of the keys that are kept at the end
}

// Grow asks about every key once, lets all expire, and then asks about a few
// of them half as often as there were keys. The end of a call is the beginning
// of the next, so the clock is read once a call; what the machine does to the
// loop is in the times too.
func Grow(s Subject, keys Keys) *Growth {
	g := new(Growth)
	last := time.Now()
	for i := range keys.Len() {
		s.Allow(keys.At(uint32(i)))
		now := time.Now()
		g.Grow.Add(now.Sub(last))
		last = now
	}
	grown := s.Len()
	s.Expire()
	few := min(keys.Len(), 1000)
	last = time.Now()
	for i := range keys.Len() / 2 {
		s.Allow(keys.At(uint32(i % few)))
		now := time.Now()
		g.Shrink.Add(now.Sub(last))
		last = now
	}
	g.Left = float64(s.Len()) / float64(max(1, grown))
	s.Close()
	return g
}
