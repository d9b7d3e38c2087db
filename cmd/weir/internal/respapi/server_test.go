package respapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/respapi"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/store/memstore"
)

// pipes is a listener whose connections are in memory, so that a test's clock can be
// virtual.
type pipes struct {
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), end: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.end) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// newServer returns a server of the rules in a text. change may change its
// configuration.
func newServer(t testing.TB, rules string, change func(*respapi.Config)) *respapi.Server {
	t.Helper()
	memory := memstore.New()
	e := scripttest.Engine(t, scripttest.Rules(t, rules), weir.WithStore(memory))
	c := respapi.Config{Namespaces: namespace.Only(e), Version: "test", Throttle: func(space string, l weir.Limit) (*weir.Limiter, error) {
		return weir.NewLimiter(l, weir.WithStore(memory), weir.WithName("CL.THROTTLE"), weir.WithNamespace(space))
	}}
	if change != nil {
		change(&c)
	}
	s := respapi.New(c)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), e.Close(), memory.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is a connection to a server.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func newClient(t testing.TB, c net.Conn) *client { return &client{t, c, bufio.NewReader(c)} }

// command returns a command in the form that programs send.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// send sends text while it reads replies to n commands, and returns these.
func (c *client) send(text string, n int) []string {
	c.t.Helper()
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(c.Conn, text); sent <- err }()
	var got []string
	for range n {
		r, err := c.reply()
		if err != nil {
			c.t.Fatalf("%.100q: got %q and then %v", text, got, err)
		}
		got = append(got, r)
	}
	if err := <-sent; err != nil {
		c.t.Fatal(err)
	}
	return got
}

// do sends one command and returns its reply.
func (c *client) do(args ...string) string {
	c.t.Helper()
	return c.send(command(args...), 1)[0]
}

// reply reads one reply, as text.
func (c *client) reply() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.Atoi(rest)
	switch kind {
	case '+', '-', ':', ',', '#', '_':
		return line[:len(line)-2], nil
	case '$':
		if n < 0 {
			return "null", nil
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, text); err != nil {
			return "", err
		}
		return strconv.Quote(string(text[:n])), nil
	case '*', '%':
		if kind == '%' {
			n *= 2
		}
		var list []string
		for range n {
			e, err := c.reply()
			if err != nil {
				return "", err
			}
			list = append(list, e)
		}
		return string(kind) + "[" + strings.Join(list, " ") + "]", nil
	}
	return "", fmt.Errorf("got %q, want a reply", line)
}

// serve serves l until the test ends.
func serve(t testing.TB, s *respapi.Server, l net.Listener) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-ended); err != nil {
			t.Errorf("got %v, want an orderly end", err)
		}
	})
}

// local serves s on a free port, and returns what dials it.
func local(t testing.TB, s *respapi.Server) func() *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s, l)
	return func() *client {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return newClient(t, c)
	}
}
