package wire_test

import (
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// A carrier that keeps its processor does not keep a collection of garbage waiting: that
// interrupts it.
func TestCollectionInterruptsWatch(t *testing.T) {
	t.Parallel()
	here, _ := tcp(t)
	raw, err := here.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ready, errno, err := wire.PollKept(raw, time.Minute)
		if ready || errno != syscall.EINTR || err != nil {
			t.Errorf("got %t, %v, %v; want false, %v, <nil>", ready, errno, err, syscall.EINTR)
		}
	}()
	for {
		select {
		case <-ended:
			return
		default:
			runtime.GC() // the first ones may come before the wait has begun
		}
	}
}

// A watch ends as soon as there is something to read.
func TestWatchEndsWithReply(t *testing.T) {
	t.Parallel()
	here, there := tcp(t)
	raw, err := here.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Write([]byte("+one\r\n")); err != nil {
		t.Fatal(err)
	}
	for {
		ready, errno, err := wire.PollKept(raw, time.Minute)
		if errno == syscall.EINTR {
			continue // a collection of another test
		}
		if !ready || errno != 0 || err != nil {
			t.Errorf("got %t, %v, %v; want true without an error", ready, errno, err)
		}
		return
	}
}

// After a watch without a reply, the next ones keep no processor. Then one tries again.
func TestFarServerKeepsNoProcessor(t *testing.T) {
	t.Parallel()
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("a program with one processor does not watch")
	}
	here, there := tcp(t)
	d := wire.NewDirect(here)
	if !d.Take() {
		t.Fatal("got no use of a new direct")
	}
	watch := func(until func() bool) {
		for range 1000 {
			if d.Watch(); until() {
				return
			}
		}
		t.Fatalf("got %d watches without a processor, and no change", d.Far())
	}
	watch(func() bool { return d.Far() == 64 }) // a collection of another test may end a watch
	if _, err := there.Write([]byte("+one\r\n")); err != nil {
		t.Fatal(err)
	}
	for left := 63; left >= 0; left-- {
		watch(func() bool { return d.Far() == left })
	}
	d.Watch()
	if d.Far() != 0 {
		t.Errorf("after a reply: got %d watches without a processor, want none", d.Far())
	}
}
