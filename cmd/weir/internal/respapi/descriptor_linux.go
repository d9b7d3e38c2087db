package respapi

import (
	"net"
	"sync"
	"syscall"
)

// descriptor is a connection by its file descriptor. Its Close ends the connection, and
// leaves it to the loop to free the descriptor.
type descriptor struct {
	net.Conn // closed; for the addresses

	mu sync.Mutex
	fd int // -1 after it was freed; guarded by mu
}

// Close implements [net.Conn].
func (d *descriptor) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd >= 0 {
		_ = syscall.Shutdown(d.fd, syscall.SHUT_RDWR) // it may have ended already
	}
	return nil
}

func (d *descriptor) free() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = syscall.Close(d.fd)
	d.fd = -1
}

// adopt moves a connection into the loop. It reports false, and changes nothing, if the
// connection has no descriptor that can be taken.
func (l *loop) adopt(c *conn) bool {
	if l.server.c.Below == nil {
		return false
	}
	inner, replace := l.server.c.Below(c.socket)
	system, ok := inner.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return false
	}
	// A duplicate of the descriptor is the loop's. The original is closed: otherwise the
	// poller of the runtime would be woken for each command, too.
	fd := -1
	err = raw.Control(func(original uintptr) {
		n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, original, syscall.F_DUPFD_CLOEXEC, 0)
		if errno == 0 {
			fd = int(n)
		}
	})
	if err != nil || fd < 0 {
		return false
	}
	d := &descriptor{Conn: inner, fd: fd}
	if inner == c.socket {
		c.socket = d
	}
	if replace(d); inner.Close() != nil {
		_ = syscall.Shutdown(fd, syscall.SHUT_RDWR)
	}
	c.looped.Store(true)
	p := &polled{conn: c, fd: d}
	l.mu.Lock()
	ended := l.wake < 0
	if !ended {
		l.conns[int32(fd)] = p
	}
	l.mu.Unlock()
	if ended {
		_ = c.socket.Close()
		d.free()
		l.server.remove(c)
	} else if l.watch(syscall.EPOLL_CTL_ADD, fd, readable) != nil {
		l.end(p)
	}
	return true
}

// readable are the events of a connection that the loop reads from. epoll reports each when
// it happens and not again (EPOLLET): otherwise it would look at each connection once more
// to find out that everything was read. So the loop reads on after a read that has filled
// the buffer, and up to the end after the client has ended its side.
const readable = syscall.EPOLLIN | syscall.EPOLLRDHUP | -syscall.EPOLLET

// hungUp are the events of a client that has ended its side.
const hungUp = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
