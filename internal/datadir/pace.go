package datadir

import "time"

const (
	// A flush works for workTime, rests for restTime, and so on.
	workTime = 200 * time.Microsecond
	restTime = time.Millisecond

	// restShare is the part of the interval, one in restShare, that the rests of one
	// flush take at most.
	restShare = 2
)

// pace makes a flush rest now and then. The writing of 60,000 keys takes about ten
// milliseconds. Without rests the goroutine would keep a processor for as long, and
// calls that need the same processor would wait. When the system then gives the
// processor to another thread, the goroutine may hold the lock of a shard, and calls
// wait for both.
//
// The zero pace never rests.
type pace struct {
	store *Store
	left  time.Duration // that this flush may rest
	since time.Time     // the end of the last rest
	timer *time.Timer
}

// begin begins a flush of s that may rest for most in all.
func (p *pace) begin(s *Store, most time.Duration) {
	if p.store = s; p.timer == nil {
		p.timer = time.NewTimer(restTime)
	}
	p.left, p.since = most, time.Now()
}

// rest rests if it is time to. A flush that somebody waits for does not rest any more.
// rest must not be called under a lock.
func (p *pace) rest() {
	if p.left <= 0 {
		return
	}
	now := time.Now()
	if now.Sub(p.since) < workTime {
		return
	}
	if p.store.queue.waits() {
		p.left = 0
		return
	}
	p.timer.Reset(restTime)
	select {
	case <-p.timer.C:
		p.since = time.Now()
		p.left -= p.since.Sub(now)
	case <-p.store.stop:
		p.left = 0
	}
}
