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

// await blocks this thread until a read of fd returns something, for d at most. It may
// return earlier. The runtime may take the thread's processor.
func await(fd uintptr, d time.Duration) {
	p, most := pollOf(fd, d)
	_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&most)), 0, 0, 0)
}

// awaitKept does what await does, but the runtime does not see that the thread sleeps, and
// cannot take its processor. It reports false if there was nothing to read for all of d.
func awaitKept(fd uintptr, d time.Duration) bool {
	ready, err := pollKept(fd, d)
	return ready || err != 0
}

// pollKept waits for d at most, and keeps the processor of the runtime. It reports whether a
// read of fd returns something. A collection of garbage, and whatever else stops all
// goroutines, interrupts it with a signal; it returns EINTR then.
func pollKept(fd uintptr, d time.Duration) (ready bool, err syscall.Errno) {
	p, most := pollOf(fd, d)
	n, _, err := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&most)), 0, 0, 0)
	return err == 0 && n > 0, err
}

func pollOf(fd uintptr, d time.Duration) (pollFD, syscall.Timespec) {
	return pollFD{fd: int32(fd), events: pollIn}, syscall.NsecToTimespec(d.Nanoseconds())
}
