package wire

import (
	"syscall"
	"time"
	"unsafe"
)

// pollFD is the struct pollfd of poll(2).
type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// awaitReadable blocks this thread until a read of fd returns something, for d at most,
// which is below a second. It may return earlier.
func awaitReadable(fd uintptr, d time.Duration) {
	p := pollFD{fd: int32(fd), events: pollIn}
	most := syscall.NsecToTimespec(d.Nanoseconds())
	_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&most)), 0, 0, 0)
}
