package shortcut

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// conn is one connection. Its goroutine alone uses it, but for socket and phase.
type conn struct {
	server *Server
	socket net.Conn
	work   func(by int32) // may be nil
	remote string

	phase atomic.Int32

	in     []byte // bytes that are not answered yet
	head   head
	body   body
	writer writer
	now    time.Time // when the last call had arrived
}

// The phases of a connection.
const (
	idle int32 = iota
	working
	ended // by Shutdown
)

// rest is how long a client may take for the rest of a call. After that, net/http waits
// for it, with the bounds that it has for all.
const rest = time.Second

// leastAgain is how many bytes behind an answer are the start of another call. A client
// that sends fewer and leaves gets no answer, as from net/http.
const leastAgain = 4

func (s *Server) newConn(socket net.Conn) *conn {
	c := &conn{server: s, socket: socket, remote: socket.RemoteAddr().String(), in: make([]byte, 0, maxCall), now: time.Now()}
	c.writer.to, c.writer.header = socket, http.Header{}
	if s.c.Working != nil {
		c.work = s.c.Working(socket)
	}
	return c
}

// serve answers the plain calls of the connection. It reports whether others follow.
func (c *conn) serve() (others bool) {
	_ = c.socket.SetReadDeadline(c.now.Add(c.server.c.First))
	late := false   // the client has sent a part of a call
	behind := false // the next bytes follow an answer
	for {
		n, what := 0, partial
		if behind && len(c.in) >= leastAgain {
			behind = false
			c.drop(blanks(c.in[:leastAgain]))
		}
		if !behind {
			n, what = c.scan()
		}
		if what == other || what == partial && len(c.in) == cap(c.in) {
			return true
		}
		if what == plain {
			late, behind = false, true
			if c.now = time.Now(); !c.answer(c.in[n-c.head.length : n]) {
				return false
			}
			if c.drop(n); len(c.in) > 0 {
				continue
			}
			_ = c.socket.SetReadDeadline(c.now.Add(c.server.c.Idle))
		} else if len(c.in) > 0 && !late {
			late = true
			_ = c.socket.SetReadDeadline(time.Now().Add(rest))
		}
		got, err := c.socket.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+got]
		if err != nil && got == 0 {
			return !behind && len(c.in) > 0 // net/http sees the same end, and answers what is left
		}
	}
}

// drop drops the first n bytes that were read.
func (c *conn) drop(n int) { c.in = c.in[:copy(c.in, c.in[n:])] }

// blanks returns the number of line ends at the start of b. Old clients send one behind
// the body of a POST, and net/http skips it.
func blanks(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "\r\n")) }

// scan looks for a plain call at the start of c.in, and returns its bytes.
func (c *conn) scan() (n int, what found) {
	if len(c.in) == 0 {
		return 0, partial
	}
	n, again := c.head.again(c.in)
	if !again {
		if n, what = c.head.read(c.in); what != plain {
			return 0, what
		}
		c.head.request.RemoteAddr = c.remote
	}
	if n += c.head.length; n <= len(c.in) {
		return n, plain
	}
	if n > cap(c.in) {
		return 0, other
	}
	return 0, partial
}

// answer answers a call. It reports whether the connection goes on.
func (c *conn) answer(content []byte) bool {
	if !c.phase.CompareAndSwap(idle, working) {
		return false
	}
	if c.work != nil {
		c.work(1)
		defer c.work(-1)
	}
	r := &c.head.request
	c.body.left = content
	r.Body, r.ContentLength = &c.body, int64(len(content))
	if len(content) == 0 {
		r.Body = http.NoBody
	}
	_ = c.socket.SetWriteDeadline(c.now.Add(c.server.c.Write))
	c.writer.begin(c.now, c.head.close)
	if !c.handle(r) {
		return false
	}
	c.writer.end = c.writer.end || c.server.leaving.Load()
	if c.writer.finish() != nil {
		return false
	}
	if c.writer.end {
		c.linger()
		return false
	}
	c.phase.Store(idle)
	return !c.server.ending.Load() || !c.phase.CompareAndSwap(idle, ended) // Shutdown sees one of the two
}

// handle calls the handler. It reports false if the handler has panicked.
func (c *conn) handle(r *http.Request) (ok bool) {
	defer func() {
		if ok {
			return
		}
		if err := recover(); err != nil && err != http.ErrAbortHandler { //nolint:errorlint // as net/http does
			trace := make([]byte, 64<<10)
			c.server.c.ErrorLog.Printf("http: panic serving %v: %v\n%s", c.remote, err, trace[:runtime.Stack(trace, false)])
		}
	}()
	c.server.c.Handler.ServeHTTP(&c.writer, r)
	return true
}

// linger ends the writing side and reads what the client still sends. Otherwise the
// system would reset the connection, and the client might not see the answer.
func (c *conn) linger() {
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.socket.SetReadDeadline(time.Now().Add(rest / 2))
		_, _ = io.CopyN(io.Discard, c.socket, 64<<10)
	}
}

// body is the body of a plain call.
type body struct{ left []byte }

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n := copy(p, b.left)
	if b.left = b.left[n:]; len(b.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// Close implements [io.Closer].
func (b *body) Close() error { return nil }

// passed is a connection that is passed on. Its first bytes were read already.
type passed struct {
	net.Conn
	read []byte
}

// Read implements [net.Conn].
func (p *passed) Read(b []byte) (int, error) {
	if len(p.read) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.read)
	if p.read = p.read[n:]; len(p.read) == 0 {
		p.read = nil
	}
	return n, nil
}

// NetConn returns the connection below.
func (p *passed) NetConn() net.Conn { return p.Conn }

// CloseWrite shuts down the writing side, as net/http does before it closes.
func (p *passed) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
