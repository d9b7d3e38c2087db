package wire

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// watchFor is how long a carrier waits for replies in the operating system before it
// waits as other goroutines do. Replies on the same machine take less, behind another
// train, too: two trains of 32 steps take 0.4 ms where each step has a slot of its own, and
// 1 ms with three rules.
const watchFor = time.Millisecond

// keepFor is the part of watchFor in which a carrier keeps its processor, even if the runtime
// has other work for it. In a system call that the runtime sees it loses the processor after
// 20 µs or more when no other one is idle: its monitor then starts a thread, which takes half
// of the callers with answers from the other carrier, runs them on the core that the server
// needs, and sleeps again. So callers of two carriers cost the client a third more time than
// those of a program with one processor.
// Goroutines that need a processor while all of them are kept wait for that long, unless replies
// come earlier, which they do on the same machine.
const keepFor = 250 * time.Microsecond

// farFor is for how many watches a connection keeps no processor after one that did it in
// vain. Its server is far, or slow. It would cost the rest of the program a processor for a
// part of each round trip.
const farFor = 64

// othersAfter is how long carriers may wait like that without a wait in the runtime's poller.
// A processor that is kept does not look whether there is something to read for goroutines
// with other connections, and the runtime's monitor does so every 10 ms only.
const othersAfter = time.Millisecond

// watches bounds the carriers that wait for replies in the operating system. Such a
// carrier keeps its processor of the runtime, so that this one need not look for other
// work, sleep, and be woken. The runtime's monitor, which wakes up each time when all
// processors have slept, took a quarter of the client's time. Other goroutines do without
// the processor meanwhile: see keepFor. There are as many watches as processors,
// and none in a program with a single one. The zero value is ready; it is safe for concurrent use.
type watches struct {
	kept   atomic.Int32
	others atomic.Int64 // when a carrier last waited in the runtime's poller in place of a watch
}

// begin reports whether a carrier may wait in the operating system, at now. If so the caller
// calls end. If not it waits in the runtime's poller.
func (w *watches) begin(now time.Duration) bool {
	if last := w.others.Load(); int64(now)-last > int64(othersAfter) && w.others.CompareAndSwap(last, int64(now)) {
		return false
	}
	all := runtime.GOMAXPROCS(0)
	if int(w.kept.Add(1)) > all || all < 2 {
		w.kept.Add(-1)
		return false
	}
	return true
}

func (w *watches) end() { w.kept.Add(-1) }

// rawConn returns the connection for watch, or nil when replies pass something between
// the connection and its reader, as with TLS.
func rawConn(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil // reads tell why
	}
	return raw
}

// watch waits until there is something to read, for watchFor at most, if that is allowed.
func (d *direct) watch() {
	if d.raw == nil || !d.watches.begin(elapsed()) {
		return
	}
	defer d.watches.end()
	_ = d.raw.Read(func(fd uintptr) bool { // the next read tells what is wrong
		switch {
		case d.far > 0:
			d.far--
		case awaitKept(fd, keepFor):
			return true
		default:
			d.far = farFor
		}
		await(fd, watchFor-keepFor)
		return true
	})
}
