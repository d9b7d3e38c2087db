package api

import "net"

// Listen returns a listener whose connections read what koala's clients send as
// requests that net/http accepts. net/http refuses with 400 or 505, in plain
// text, a head without a Host or with two, a target without a leading slash or
// with a blank in it, and a version that it does not know; koala answers all of
// these.
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
	err   error  // what comes behind out
}

// Read reads on. Like the reading of any connection it is for one goroutine at
// a time.
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
		c.err = nil // it may have been a deadline, which can be moved
		return 0, err
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// CloseWrite ends what is written and lets the client read it to its end.
func (c *conn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}
