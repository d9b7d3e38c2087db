package wire

import (
	"syscall"
	"time"
	"unsafe"
)

// keepFor is the part of watchFor in which a carrier keeps its processor, even if the runtime
// has other work for it. In a system call that the runtime sees it loses the processor after
// 20 µs or more when no other one is idle: its monitor then starts a thread, which takes half
// of the callers with answers from the other carrier, runs them on the core that the server
// needs, and sleeps again. So callers of two carriers cost the client a third more time than
// those of a program with one processor.
// Goroutines that need a processor while all of them are kept wait for that long, unless replies
// come earlier, which they do on the same machine.
const keepFor = 250 * time.Microsecond

// pollFD is the struct pollfd of poll(2).
type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// awaitReadable blocks this thread until a read of fd returns something, for d at most. It
// may return earlier. For keepFor the runtime does not see that the thread sleeps.
func awaitReadable(fd uintptr, d time.Duration) {
	if ready, err := pollKept(fd, min(d, keepFor)); ready || err != 0 || d <= keepFor {
		return
	}
	p, most := pollOf(fd, d-keepFor)
	_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&most)), 0, 0, 0)
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
