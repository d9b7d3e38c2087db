package server

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// A connection that was removed from those that are open, and that still reads, costs no other connection its place.
func TestIncompleteRequestOfRemovedConnection(t *testing.T) {
	t.Parallel()
	sheds := 0
	c := newConnLimiter(nil, 10, false, func() { sheds++ })
	c.incoming.most = 64 << 10
	conn := func() *limitedConn {
		one, other := net.Pipe()
		t.Cleanup(func() { one.Close(); other.Close() })
		g := &limitedConn{Conn: one, limiter: c}
		c.addLocked(g, "")
		return g
	}
	bystander, removed := conn(), conn()
	bystander.arrive(10 << 10)
	c.removeLocked(removed)
	removed.arrive(60 << 10)
	if bystander.ended || !removed.ended || sheds != 1 || c.incoming.total != 10<<10 {
		t.Errorf("got ended %v and %v, %d closed, %d bytes, want the removed one closed alone", bystander.ended, removed.ended, sheds, c.incoming.total)
	}
	bystander.settle()
	if c.incoming.total != 0 {
		t.Errorf("got %d bytes after a request, want none", c.incoming.total)
	}
}

// Without a limit on connections, there is one on what they have sent that is not a request yet.
func TestIncompleteRequestsOfAnyNumberOfConnections(t *testing.T) {
	t.Parallel()
	to := config.Listener{Address: config.Address{Scheme: "http", Host: "127.0.0.1:0"}}
	sheds := make(chan bool, 10)
	l, err := listen(to, nil, 0, 64<<10, func() { sheds <- true }, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = l.serve() }()
	for range 3 {
		c, err := net.Dial("tcp", l.socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 30<<10)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-sheds:
	case <-time.After(10 * time.Second):
		t.Error("no connection was closed")
	}

	cfg := config.Default()
	cfg.Resources.Connections = 0
	s, err := newResources(cfg, metrics.New(metrics.Config{}), slog.New(slog.DiscardHandler)).socket(to)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c, ok := s.(*connLimiter); !ok || c.incoming.most == 0 || c.most != 0 {
		t.Errorf("got a socket %+v, want one with a limit on bytes alone", s)
	}
}
