package respapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// conn is one connection. Only its goroutine uses it, except socket.
type conn struct {
	server *Server
	socket net.Conn
	work   func(by int32) // may be nil
	busy   bool           // the connection is marked as busy by work
	id     int64
	name   string // that the client has given itself
	ended  bool   // after QUIT or an error of the protocol

	credentials access.Credentials
	user        string // a namespace that AUTH has named
	caller      *access.Holder
	namespace   *namespace.Namespace
	checked     time.Time // when caller and space were found; zero: not found
	known       bool      // they were found at least once since the last AUTH

	in    []byte             // bytes that were read and not decided yet
	skips rest               // of a command that was refused
	large access.Reservation // for the part of in above smallBatch, and as much for its text
	works access.Reservation // for a large batch, and then for its replies until they are written
	due   time.Time          // the deadline of the rest of a command, or of the token of an unauthenticated client; zero: none
	spans []span             // of the arguments of one command
	args  []string
	out   replies
	batch batch

	transaction transaction

	attributes []weir.Attribute // of all items of a batch
	began      time.Time        // when the batch began
	throttles  *throttles       // of space
}

const (
	smallRead    = 4 << 10  // bytes that a client may send before it is authenticated, and of its replies in a batch
	maxSpareRead = 16 << 10 // bytes of the read buffer that a connection keeps for its next batch
)

func (s *Server) newConn(socket net.Conn) *conn {
	c := &conn{server: s, socket: socket, id: s.ids.Add(1), large: access.Reservation{Resources: s.c.Resources}, works: access.Reservation{Resources: s.c.Resources}}
	below := socket
	if t, ok := socket.(interface{ NetConn() net.Conn }); ok {
		below = t.NetConn()
	}
	c.credentials.Conn, _ = below.(access.Conn)
	if s.c.Working != nil {
		c.work = s.c.Working(below)
	}
	if a := socket.RemoteAddr(); a.Network() != "unix" {
		c.credentials.Address = a.String()
	}
	return c
}

// serve serves the connection until it ends.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer c.socket.Close()
	defer c.large.Free()
	defer c.works.Free()
	defer c.endTransaction()
	if t, ok := c.socket.(*tls.Conn); ok && !c.handshake(t) {
		return
	}
	for !c.ended {
		used := c.decide(time.Now())
		if len(c.out.b) > 0 && !c.flush() {
			return
		}
		if used > 0 {
			c.in = c.in[:copy(c.in, c.in[used:])]
			if !c.isUnauthenticated() && !c.transaction.open && c.skips == (rest{}) {
				c.due = time.Time{}
			}
			if len(c.in) > 0 {
				continue // there can be another batch
			}
		}
		if !c.ended && !c.read() && !c.ended {
			return
		}
	}
	// The client may still send. Without reading that, the system would reset the
	// connection, and the last reply could be lost.
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.socket.SetReadDeadline(time.Now().Add(grace))
		_, _ = io.CopyN(io.Discard, c.socket, 1<<20)
	}
}

// handshake completes TLS and keeps the client's certificate.
func (c *conn) handshake(t *tls.Conn) bool {
	_ = t.SetWriteDeadline(time.Now().Add(c.server.c.Patience))
	c.readUntil(time.Now().Add(c.server.c.Patience))
	if t.Handshake() != nil {
		return false
	}
	c.readUntil(time.Time{})
	var cert *x509.Certificate
	if chains := t.ConnectionState().VerifiedChains; len(chains) > 0 {
		cert = chains[0][0]
	}
	c.credentials.Certificate = cert
	return true
}

// read reads more of what the client sends. It reports false at the end of the
// connection.
func (c *conn) read() bool {
	if !c.grow() {
		return false
	}
	// A client that has sent a part of a command or of a transaction has a deadline for the
	// rest, and an unauthenticated client has one for its token, however often they send a
	// little. Other connections may be idle forever, because clients keep connections.
	if len(c.in) > 0 || c.skips != (rest{}) || c.transaction.open || c.isUnauthenticated() {
		if c.due.IsZero() {
			c.due = time.Now().Add(c.server.c.Patience)
		}
		c.readUntil(c.due)
		defer c.readUntil(time.Time{})
	}
	n, err := c.socket.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		return true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.server.leaving.Load() {
		switch {
		case len(c.in) > 0 || c.skips != (rest{}):
			c.end("ERR Protocol error: timeout while reading the rest of a command")
		case c.transaction.open:
			c.end("ERR Protocol error: timeout while waiting for EXEC or DISCARD")
		}
	}
	return err == nil
}

// isUnauthenticated reports whether the caller needs a token and has not sent one yet.
func (c *conn) isUnauthenticated() bool {
	l := c.server.c.Auth
	return !c.known && l != nil && l.Keys != nil && c.credentials.Certificate == nil
}

// end writes the last reply, to a client that breaks the protocol.
func (c *conn) end(text string) {
	c.out.fail(text)
	c.server.protocol.Add(1)
	c.ended = true
	c.flush()
}

// readUntil sets the deadline of reads, unless the server is shutting down. [Server.Shutdown]
// first sets the flag, and then its own deadline, so that either readUntil sees the flag or
// Shutdown's deadline is set last.
func (c *conn) readUntil(t time.Time) {
	_ = c.socket.SetReadDeadline(t)
	if c.server.leaving.Load() {
		_ = c.socket.SetReadDeadline(time.Now().Add(grace))
	}
}

// grow grows c.in for the next read. It reports false if the connection must end, because the
// client has sent as much as it may without a complete command, or no memory is available for
// the rest of one.
func (c *conn) grow() bool {
	switch rest := len(c.in); {
	case cap(c.in) > maxSpareRead && rest == 0:
		c.in = nil
		c.large.Free()
	case cap(c.in) > smallBatch && rest <= smallBatch/2: // the beginning of a command after a large one
		c.in = append(make([]byte, 0, smallBatch), c.in...)
		c.large.Free()
	}
	if len(c.in) < cap(c.in) {
		return true
	}
	if len(c.in) >= smallRead && c.isUnauthenticated() {
		c.end("NOAUTH Authentication required: send AUTH and a token")
		return false
	}
	size := max(smallRead, 2*cap(c.in))
	if size > smallBatch {
		if err := c.admit(access.None); err != nil { // it takes the memory of its caller
			c.end(errorText(err))
			return false
		}
		if err := c.large.Reserve(2 * int64(size-cap(c.in))); err != nil {
			c.end(errorText(err))
			return false
		}
	}
	grown := make([]byte, len(c.in), size)
	copy(grown, c.in)
	c.in = grown
	return true
}

// flush writes the replies. It reports false if the client does not take them.
func (c *conn) flush() bool {
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.server.c.Patience))
	_, err := c.socket.Write(c.out.b)
	c.out.reuse()
	c.works.Free()
	return err == nil
}

// decide decides the complete commands in c.in, up to a batch, and appends their replies. now is
// about when they arrived. It returns the bytes that the commands take.
func (c *conn) decide(now time.Time) (used int) {
	if len(c.in) == 0 {
		return 0
	}
	c.beginWork()
	defer c.endWork()
	c.began = now
	if !c.checked.IsZero() && now.Sub(c.checked) > checkEvery {
		c.checked = time.Time{} // a token may have been revoked
	}
	// The arguments of commands in RESP are parts of one string, so that a batch takes one
	// allocation.
	text := ""
	used, err := c.skips.skip(c.in)
	for n := 0; n < maxBatch && !c.ended && err == nil && c.skips == (rest{}); n++ {
		var took int
		c.spans, took, c.skips, err = scan(c.in[used:], c.spans[:0])
		if took == 0 {
			break
		}
		of, at := text, used
		switch {
		case c.in[used] != '*': // an inline command, which scan has changed
			of, at = string(c.in[used:used+took]), 0
		case text == "":
			text = string(c.in)
			of = text
		}
		c.args = c.args[:0]
		for _, s := range c.spans {
			c.args = append(c.args, of[at+s.from:at+s.to])
		}
		used += took
		switch {
		case c.skips != (rest{}) && c.isUnauthenticated():
			err = errUnauthenticated
		case c.skips != (rest{}):
			c.refuse(c.args)
			took, err = c.skips.skip(c.in[used:])
			used += took
		case len(c.args) > 0:
			c.command(c.args)
		}
		if n := len(c.out.b); n >= maxReplies || n >= smallRead && c.isUnauthenticated() {
			break // the client reads these first
		}
	}
	c.settle()
	if err != nil {
		c.out.fail(err.Error())
		c.server.protocol.Add(1)
		c.ended = true
	}
	clear(c.args[:cap(c.args)]) // otherwise they would keep the text
	return used
}

// beginWork marks the connection as busy, unless the client is unauthenticated: whatever such
// clients send, their connections are closed before those of others.
func (c *conn) beginWork() {
	if c.work != nil && !c.busy && !c.isUnauthenticated() {
		c.busy = true
		c.work(1)
	}
}

// endWork ends what beginWork began, if it marked the connection.
func (c *conn) endWork() {
	if c.busy {
		c.busy = false
		c.work(-1)
	}
}

// maxReplies is the size of replies, in bytes, at which a batch ends.
const maxReplies = smallBatch
