package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is how long the calling thread has been running.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano()) // then all of it was running
	}
	return time.Duration(t.Nano())
}
