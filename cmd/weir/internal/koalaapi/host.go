package koalaapi

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
)

// MaxHead is the maximum size of the request line and headers of a request, in bytes. A
// multi/browse has all of its requests in the request line.
const MaxHead = 256 << 10

// Listen returns a listener for koala's clients. One of them, written in PHP, sends
// HTTP/1.1 without a Host, which net/http refuses. So the first request of a connection
// gets an empty Host if it has none. The same client takes an answer that it cannot read for
// permission. So what net/http answers to a request that it cannot parse becomes the row of a
// failure.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn adds a Host to the first head that is read from it, and writes rows in place of
// net/http's own errors.
type conn struct {
	net.Conn
	head  []byte // the first head and what came with it, until it is read
	first int    // where the first line ends in head
	line  int    // where the last line begins in head
	whole bool   // head is complete, and has a Host
}

// Read implements [net.Conn]. It must not be called concurrently.
func (c *conn) Read(p []byte) (int, error) {
	for !c.whole && len(p) > 0 {
		n, err := c.Conn.Read(p)
		c.add(p[:n])
		switch {
		case err != nil:
			return 0, err // incomplete headers are not a request
		case !c.whole && len(c.head) > MaxHead:
			c.refuse()
			return 0, io.EOF
		}
	}
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	if c.head = c.head[n:]; len(c.head) == 0 {
		c.head = nil
	}
	return n, nil
}

// refuse answers a head that is too long, as net/http would, but with the row of a failure. It
// reads a little more, so that the client gets the answer although it is still writing.
func (c *conn) refuse() {
	_ = c.fail("431 Request Header Fields Too Large", "request line and headers are longer than 256 KiB")
	_ = c.CloseWrite()
	c.head = nil
	_, _ = io.CopyN(io.Discard, c.Conn, 4*MaxHead)
}

// fail writes an answer with the row of a failure. It is the last one.
func (c *conn) fail(status, text string) error {
	_, err := io.WriteString(c.Conn, lastAnswer(status, failure(-1, text)))
	return err
}

// Refusal returns the answer to a connection that is refused because all others are at work.
func Refusal() string {
	return lastAnswer("503 Service Unavailable\r\nRetry-After: 1", failure(-5, "all connections are at work; try again"))
}

// lastAnswer returns the text of an answer with a row, behind which the connection is closed.
func lastAnswer(status string, r row) string {
	body := oneRow(nil, r)
	return fmt.Sprintf("HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: %s\r\nServer: %s\r\nContent-Length: %d\r\n\r\n%s",
		status, contentType, serverName, len(body), body)
}

// unparsed matches the answer of net/http to a request that it does not hand to the API. The
// API's own answers have another Content-Type.
var unparsed = regexp.MustCompile(`\AHTTP/1\.1 ([45]\d\d [^\r]*)\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n`)

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	if len(p) > len("HTTP/1.1 ") && p[len("HTTP/1.1 ")] >= '4' {
		if told := unparsed.FindSubmatch(p); told != nil {
			return len(p), c.fail(string(told[1]), "the request cannot be read: "+string(told[1]))
		}
	}
	return c.Conn.Write(p)
}

// add adds what was read to the head.
func (c *conn) add(in []byte) {
	end := len(c.head)
	c.head = append(c.head, in...)
	for !c.whole {
		i := bytes.IndexByte(c.head[end:], '\n')
		if i < 0 {
			return
		}
		end += i + 1
		line := bytes.TrimSuffix(c.head[c.line:end-1], []byte("\r"))
		name, _, _ := bytes.Cut(line, []byte(":"))
		c.line = end
		switch {
		case c.first == 0:
			c.first = end
		case bytes.EqualFold(name, []byte("Host")):
			c.whole = true
		case len(line) == 0:
			c.head, c.whole = slices.Insert(c.head, c.first, []byte("Host:\r\n")...), true
		}
	}
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the side of the connection that is written, so that the
// client can read to the end.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
