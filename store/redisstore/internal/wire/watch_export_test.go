//go:build linux

package wire

import (
	"syscall"
	"time"
)

// PollKept returns what pollKept does for a connection.
func PollKept(raw syscall.RawConn, d time.Duration) (ready bool, errno syscall.Errno, err error) {
	err = raw.Control(func(fd uintptr) { ready, errno = pollKept(fd, d) })
	return ready, errno, err
}
