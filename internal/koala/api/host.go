package api

import "net"

// Listen has l accept what koala's clients send: HTTP/1.1 without a Host
// header, which net/http would refuse. A request's head gets an empty one where
// it has none.
//
// A request that may have a body is made the last one of its connection, as
// every one of koala's is: so where the next head begins never depends on how
// long a body is.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn completes the heads that are read from it.
type conn struct {
	net.Conn
	heads heads
	array []byte // of out
	out   []byte // completed, and not read yet
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
		c.array = c.heads.complete(c.array[:0], p[:n])
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
