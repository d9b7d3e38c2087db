package datadir

import "time"

const (
	// A flush works for workTime and rests for restTime in turn.
	workTime = 200 * time.Microsecond
	restTime = time.Millisecond

	// The rests of one flush take at most 1/restShare of the interval.
	restShare = 2
)

// pace makes a flush rest regularly. Writing 60,000 keys takes about ten milliseconds.
// Without rests the goroutine would occupy a CPU for that time, and calls that need the same
// CPU would wait. If the system then preempts it while it holds the lock of a shard, calls
// wait for both.
//
// The zero pace never rests.
type pace struct {
	store *Store
	left  time.Duration // that this flush may rest
	since time.Time     // the end of the last rest
	timer *time.Timer
}

// begin begins a flush of s that may rest for at most most in total.
func (p *pace) begin(s *Store, most time.Duration) {
	if p.store = s; p.timer == nil {
		p.timer = time.NewTimer(restTime)
	}
	p.left, p.since = most, time.Now()
}

// rest sleeps if a rest is due and no call waits for the flush. It must not be called under a
// lock.
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
