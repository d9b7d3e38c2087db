package koalaapi

import "net"

// Listen returns a listener whose connections turn what koala's clients send
// into requests that net/http accepts. net/http answers with 400 or 505, in
// plain text, to a head without a Host or with two, to a target without a
// leading slash or with a blank, and to an unknown version. koala answers all
// of these.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn rewrites the heads that are read from it.
type conn struct {
	net.Conn
	heads heads
	array []byte // of out
	out   []byte // rewritten, and not read yet
	err   error  // returned when out is empty
}

// Read implements [net.Conn]. It must not be called concurrently.
func (c *conn) Read(p []byte) (int, error) {
	for len(c.out) == 0 && c.err == nil {
		n, err := c.Conn.Read(p)
		if c.heads.over || len(p) == 0 {
			return n, err
		}
		c.array = c.heads.rewrite(c.array[:0], p[:n])
		c.out, c.err = c.array, err
	}
	if len(c.out) == 0 {
		err := c.err
		c.err = nil // a deadline may be moved
		return 0, err
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
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
