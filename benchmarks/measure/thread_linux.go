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
