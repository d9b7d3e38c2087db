//go:build linux

package respapi

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A connection ends with the reply that tells a client that it is late, also if the reply
// has to wait until the client takes earlier ones. What the client sends behind half a
// command is not decided.
func TestLateReplyWaits(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	l, err := openLoop(s)
	if err != nil {
		t.Fatal(err)
	}
	defer l.free()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	client, other := os.NewFile(uintptr(fds[1]), "client"), net.Conn(nil)
	defer client.Close()
	other, unused := net.Pipe()
	defer unused.Close()
	d := &descriptor{Conn: other, fd: fds[0]}
	c := s.newConn(d)
	s.group.Add(1) // which the end of the connection takes off
	p := &polled{conn: c, fd: d}
	l.conns[int32(d.fd)] = p
	if err := l.watch(syscall.EPOLL_CTL_ADD, d.fd, syscall.EPOLLIN); err != nil {
		t.Fatal(err)
	}
	filled := 0
	for {
		n, err := syscall.Write(d.fd, make([]byte, 1<<10))
		if err != nil {
			break
		}
		filled += n
	}
	c.in = append(c.in, "*2\r\n$4\r\nECHO\r\n"...)
	now := time.Now()
	p.since = now.Add(-time.Minute)
	if left := l.sweep(now, false); left != 0 || !p.writing || p.ending {
		t.Errorf("got %d connections in time, writing %t, ending %t, want none, and a reply that waits", left, p.writing, p.ending)
	}
	var got strings.Builder
	for got.Len() < filled {
		b := make([]byte, filled-got.Len())
		n, err := client.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b[:n])
	}
	if _, err := client.WriteString("$1\r\nx\r\n"); err != nil {
		t.Fatal(err)
	}
	l.serve(p)
	if !p.ending {
		t.Error("the connection goes on")
	}
	b := make([]byte, 1<<10)
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := client.Read(b)
	if want := "-ERR Protocol error: timeout while reading the rest of a command\r\n"; err != nil || string(b[:n]) != want {
		t.Errorf("got %q and error %v, want %q", b[:n], err, want)
	}
	l.end(p)
}
