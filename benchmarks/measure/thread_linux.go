package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns how long the calling thread has been running.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano()) // counts as running all the time
	}
	return time.Duration(t.Nano())
}

// pause sleeps until turn, more precisely than [time.Sleep], which rounds up to a
// millisecond.
func pause(turn time.Time) {
	for d := time.Until(turn); d > 0; d = time.Until(turn) {
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil) // a signal may end it early
	}
}
