package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// conn is a connection with as much of the Redis protocol as setting up servers
// needs. It shares no code with the client under test.
type conn struct {
	net net.Conn
	r   *bufio.Reader
}

func dial(addr, password string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	n := &conn{c, bufio.NewReader(c)}
	if password == "" {
		return n, nil
	}
	reply, err := n.do("AUTH", password)
	if e, ok := reply.(error); ok && err == nil {
		err = e
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (c *conn) close() { c.net.Close() }

func (c *conn) do(args ...string) (any, error) {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.net, b.String()); err != nil {
		return nil, err
	}
	return c.read()
}

// read reads one reply, which may be an error of the server.
func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("redistest: empty reply")
	}
	switch kind, text := line[0], line[1:]; kind {
	case '+':
		return text, nil
	case '-':
		return errors.New(text), nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, nil
		}
		if kind == '*' {
			return c.readArray(n)
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	default:
		return nil, fmt.Errorf("redistest: reply of an unknown kind: %q", line)
	}
}

func (c *conn) readArray(n int) (any, error) {
	all := make([]any, n)
	for i := range all {
		v, err := c.read()
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}
