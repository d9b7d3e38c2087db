package respapi

import (
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// A loop serves many connections on one goroutine, with epoll. For commands that are
// decided in memory this takes about half of the processor time that a goroutine for
// each connection takes: no goroutine waits and is woken for each command, and no read
// is made in vain. A connection in a loop has no deadlines of its own; the loop looks
// for late clients ten times a second.
type loop struct {
	server *Server
	epoll  int
	woken  int // the loop waits for this end of a pipe

	mu    sync.Mutex
	wake  int               // the other end; -1 when the loop has ended; guarded by mu
	conns map[int32]*polled // by file descriptor; guarded by mu

	// Only the loop uses these.
	round  round
	more   []*polled // connections to read from without an event
	now    time.Time // when the events of the round were read
	coarse bool      // there is no short wait
}

// round is a set of replies that the loop writes together, after it has decided the
// commands of all connections that had some. A client with many connections then finds
// many replies at a time, and waits less often.
type round struct {
	conns []*polled
	bytes int
}

// Bounds of a round, in bytes of replies and in connections, above which the loop writes it
// before it decides more. With more connections a client and the loop work in turns: each
// waits while the other one works.
const (
	maxRound    = 64 << 10
	maxTogether = 12
)

// polled is a connection in a loop. Only the loop uses it, but for fd.
type polled struct {
	*conn
	fd      *descriptor
	out     []byte    // replies that the client has not taken yet
	hungUp  bool      // the client has ended its side
	ready   bool      // the loop reads from it in this round or in the next one
	since   time.Time // when half a command, out or ending began to wait; zero: nothing waits
	ending  bool      // the last reply was written; the rest is read and dropped
	writing bool      // epoll reports when more can be written
	freed   bool      // the descriptor is another one's, or nobody's
}

// openLoops starts the loops of s. It starts none if the system does not allow it.
func openLoops(s *Server) (loops []*loop) {
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		l, err := openLoop(s)
		if err != nil {
			break
		}
		loops = append(loops, l)
		s.group.Go(l.run)
	}
	return loops
}

func openLoop(s *Server) (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		_ = syscall.Close(epoll)
		return nil, err
	}
	l := &loop{server: s, epoll: epoll, wake: pipe[1], woken: pipe[0], conns: map[int32]*polled{}, coarse: runtime.GOMAXPROCS(0) == 1}
	if err := l.watch(syscall.EPOLL_CTL_ADD, l.woken, syscall.EPOLLIN); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// free frees the descriptors of the loop itself.
func (l *loop) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = syscall.Close(l.epoll)
	_ = syscall.Close(l.woken)
	_ = syscall.Close(l.wake)
	l.wake = -1
}

// run serves the connections until the server leaves.
func (l *loop) run() {
	defer l.free()
	events := make([]syscall.EpollEvent, 128)
	var ready []*polled
	swept, end := time.Now(), time.Time{}
	for {
		n := l.wait(events)
		l.now = time.Now()
		ready, l.more = append(ready[:0], l.more...), l.more[:0]
		l.mu.Lock()
		for _, e := range events[:n] {
			p := l.conns[e.Fd]
			if p == nil {
				continue
			}
			p.hungUp = e.Events&hungUp != 0
			if !p.ready {
				p.ready = true
				ready = append(ready, p)
			}
		}
		l.mu.Unlock()
		for _, p := range ready {
			if l.serve(p); l.round.bytes > maxRound || len(l.round.conns) >= maxTogether {
				l.write()
			}
		}
		l.write()
		now := l.now
		if l.server.leaving.Load() && end.IsZero() {
			end = now.Add(grace)
			if l.server.closing.Load() {
				end = now
			}
		}
		if now.Sub(swept) >= tick || !end.IsZero() {
			swept = now
			if l.sweep(now, !end.IsZero() && !now.Before(end)) == 0 && !end.IsZero() {
				return
			}
		}
	}
}

// serve reads what a client has sent, decides it and writes the replies.
func (l *loop) serve(p *polled) {
	p.ready = false
	if p.freed {
		return
	}
	if p.writing {
		if !l.flush(p) {
			return
		}
		if l.decide(p); p.writing || p.ended || len(p.out) > 0 {
			return // the client takes the replies first
		}
	}
	c := p.conn
	if p.ending {
		var b [4096]byte
		switch n := l.read(p, b[:]); {
		case n <= 0 && n != again:
			l.end(p)
		case n == len(b) || n > 0 && p.hungUp:
			l.readOn(p)
		}
		return
	}
	c.room()
	n := l.read(p, c.in[len(c.in):cap(c.in)])
	switch {
	case n == again:
		return
	case n <= 0:
		l.end(p)
		return
	}
	if c.in = c.in[:len(c.in)+n]; len(c.in) == cap(c.in) || p.hungUp {
		l.readOn(p)
	}
	l.decide(p)
}

// readOn makes the loop read from p in the next round, with or without an event.
func (l *loop) readOn(p *polled) {
	p.ready = true
	l.more = append(l.more, p)
}

// decide decides what is in p.in. It writes the replies, or adds them to the round if
// nothing else has to follow.
func (l *loop) decide(p *polled) {
	c := p.conn
	for !c.ended {
		used := c.decide(l.now)
		if used > 0 {
			p.since = time.Time{}
			c.in = c.in[:copy(c.in, c.in[used:])]
		}
		if len(c.out.b) > 0 {
			p.out = c.out.b
			if len(c.in) == 0 && !c.ended {
				p.since = time.Time{}
				l.round.conns = append(l.round.conns, p)
				l.round.bytes += len(p.out)
				return
			}
			if !l.flush(p) {
				return
			}
		}
		if used == 0 || len(c.in) == 0 {
			break
		}
	}
	switch {
	case c.ended:
		l.leave(p)
	case len(c.in) == 0:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = time.Now()
	}
}

// write writes the replies of the round, and empties it.
func (l *loop) write() {
	for i, p := range l.round.conns {
		l.round.conns[i] = nil
		if !p.freed {
			l.flush(p)
		}
	}
	l.round.conns, l.round.bytes = l.round.conns[:0], 0
}

// leave ends the writing side, after the last reply.
func (l *loop) leave(p *polled) {
	p.ending, p.since = true, time.Now()
	_ = syscall.Shutdown(p.fd.fd, syscall.SHUT_WR)
}

// again is the result of a read or a write that would wait.
const again = -2

func (l *loop) read(p *polled, b []byte) int {
	return result(syscall.RawSyscall6(sysReceive, uintptr(p.fd.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0))
}

// result returns the number of bytes of a call, again, or -1.
func result(n, _ uintptr, errno syscall.Errno) int {
	switch errno {
	case 0:
		return int(n)
	case syscall.EAGAIN, syscall.EINTR:
		return again
	}
	return -1
}

// flush writes p.out. It reports false if the rest must wait, or if the connection has
// ended.
func (l *loop) flush(p *polled) bool {
	for len(p.out) > 0 {
		n := result(syscall.RawSyscall6(sysSend, uintptr(p.fd.fd), uintptr(unsafe.Pointer(&p.out[0])), uintptr(len(p.out)), syscall.MSG_NOSIGNAL, 0, 0))
		switch {
		case n > 0:
			p.out = p.out[n:]
		case n == again:
			if !p.writing {
				p.writing, p.since = true, time.Now()
				if l.watch(syscall.EPOLL_CTL_MOD, p.fd.fd, syscall.EPOLLOUT) != nil {
					l.end(p)
				}
			}
			return false
		default:
			l.end(p)
			return false
		}
	}
	p.conn.out.reuse()
	p.out = nil
	if p.writing {
		p.writing, p.since = false, time.Time{}
		if l.watch(syscall.EPOLL_CTL_MOD, p.fd.fd, readable) != nil {
			l.end(p)
			return false
		}
	}
	return true
}

// sweep ends connections whose clients are late, and at the end all. It returns the number
// of connections that are left.
func (l *loop) sweep(now time.Time, all bool) int {
	l.mu.Lock()
	var late []*polled
	for _, p := range l.conns {
		patience := l.server.c.Patience
		if p.ending {
			patience = grace
		}
		if all || !p.since.IsZero() && now.Sub(p.since) >= patience {
			late = append(late, p)
		}
	}
	left := len(l.conns) - len(late)
	l.mu.Unlock()
	for _, p := range late {
		if !all && !p.ending && !p.writing {
			p.conn.late()
			p.out, p.conn.ended = p.conn.out.b, true // also if this cannot be written yet
			if l.flush(p) {
				l.leave(p)
			}
			continue
		}
		l.end(p)
	}
	return left
}

// end ends a connection and frees it.
func (l *loop) end(p *polled) {
	l.mu.Lock()
	_, open := l.conns[int32(p.fd.fd)]
	delete(l.conns, int32(p.fd.fd))
	l.mu.Unlock()
	if !open {
		return
	}
	p.ended, p.freed, p.since = true, true, time.Time{}
	_ = p.socket.Close()
	p.fd.free()
	p.server.remove(p.conn)
}
