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
