package respapi

import (
	"syscall"
	"time"
	"unsafe"
)

// tick is how often a loop looks for late clients.
const tick = 100 * time.Millisecond

func (l *loop) watch(op, fd int, events uint32) error {
	return syscall.EpollCtl(l.epoll, op, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// stop makes the loop look whether the server leaves.
func (l *loop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake >= 0 {
		_, _ = syscall.Write(l.wake, []byte{0}) // a full pipe wakes the loop, too
	}
}

// wait returns the events that have happened. If there are none, it waits for some, up to
// a tick. It first waits a little without telling the runtime: under load events come
// within that time, and the runtime would move the loop to another thread.
func (l *loop) wait(events []syscall.EpollEvent) int {
	if len(l.more) > 0 {
		n, _ := syscall.EpollWait(l.epoll, events, 0)
		return l.awake(events[:max(n, 0)])
	}
	if n := l.wait2(events); n > 0 {
		return n
	}
	timeout := int(tick / time.Millisecond)
	if l.server.leaving.Load() {
		timeout = 10
	}
	waited, err := syscall.EpollWait(l.epoll, events, timeout)
	if err != nil {
		return 0 // interrupted
	}
	return l.awake(events[:waited])
}

// awake empties the pipe of the loop if that is among the events.
func (l *loop) awake(events []syscall.EpollEvent) int {
	for _, e := range events {
		if int(e.Fd) == l.woken {
			var b [16]byte
			_, _ = syscall.Read(l.woken, b[:])
		}
	}
	return len(events)
}

// little is how long a loop waits for events while it holds a processor of the runtime. A
// loop that does so leaves at least half of the processors to others.
const little = 100 * time.Microsecond

// epollPwait2 is the number of epoll_pwait2, whose time-out is in nanoseconds. It has
// this number on all of the usual architectures. Others answer that they do not know it,
// and so does Linux before version 5.11.
const epollPwait2 = 441

// wait2 waits for events for as long as [little].
func (l *loop) wait2(events []syscall.EpollEvent) int {
	if l.coarse {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		if errno != 0 {
			return 0
		}
		return l.awake(events[:n])
	}
	timeout := [2]int64{0, int64(little)} // seconds, nanoseconds
	n, _, errno := syscall.RawSyscall6(epollPwait2, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
	switch errno {
	case 0:
		return l.awake(events[:n])
	case syscall.EINTR:
	default:
		l.coarse = true
	}
	return 0
}
