package wire_test

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// There are as many watches as processors, and none on a single one.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	var w wire.Watches
	begun, want := 0, runtime.GOMAXPROCS(0)
	for range want + 1 {
		if w.Begin(0) {
			begun++
		}
	}
	if want == 1 {
		want = 0
	}
	if begun != want {
		t.Errorf("of %d processors: got %d watches, want %d", runtime.GOMAXPROCS(0), begun, want)
	}
	if begun > 0 {
		w.End()
		if !w.Begin(0) {
			t.Error("when one has ended: got no other watch, want one")
		}
	}
}

// A carrier does not watch when none has waited in the runtime's poller for a millisecond,
// and never in a program with one processor.
func TestWatchesLetOthersRead(t *testing.T) {
	t.Parallel()
	var w wire.Watches
	several := runtime.GOMAXPROCS(0) > 1
	for _, at := range []struct {
		now   time.Duration
		begun bool
	}{
		{0, true},
		{time.Millisecond, true},
		{time.Millisecond + 1, false}, // it waits in the poller
		{time.Millisecond + 1, true},
		{2*time.Millisecond + 1, true},
		{2*time.Millisecond + 2, false},
		{time.Hour, false},
		{time.Hour, true},
	} {
		begun := w.Begin(at.now)
		if want := at.begun && several; begun != want {
			t.Errorf("at %v: got %t, want %t", at.now, begun, want)
		}
		if begun {
			w.End()
		}
	}
}

// A watch ends when there are replies, which it does not read, when the connection has
// been closed, and when the server says nothing for a short time.
func TestWatch(t *testing.T) {
	t.Parallel()
	here, there := tcp(t)
	d := wire.NewDirect(here)
	if !d.Take() {
		t.Fatal("got no use of a new direct")
	}
	d.Watch() // there is nothing to read
	if _, err := there.Write([]byte("+one\r\n+two\r\n")); err != nil {
		t.Fatal(err)
	}
	d.Watch()
	replies, _, err := d.EvalAll(context.Background(), "1", "2")
	if err != nil || len(replies) != 2 || replies[0] != "one" || replies[1] != "two" {
		t.Errorf("after a watch: got %q, %v; want both replies", replies, err)
	}
	there.Close()
	d.Watch()
	here.Close()
	d.Watch()
}

// tcp returns both ends of a connection.
func tcp(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return here, there
}
