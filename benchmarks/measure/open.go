package measure

import (
	"runtime"
	"sync"
	"time"
)

// Open calls allow at a fixed rate, one call each interval, and returns how long
// after its turn each call ended. A call that comes late, because the program was
// stopped or the call before took long, counts with its delay: callers in the world
// do not wait for each other either.
func Open(allow func(string) bool, keys Keys, draw Draw, interval, d time.Duration) *Histogram {
	h := new(Histogram)
	mask := len(draw) - 1
	start := time.Now()
	turn := start
	for i := 0; turn.Sub(start) < d; i++ {
		now := time.Now()
		for now.Before(turn) {
			now = time.Now()
		}
		allow(keys.At(draw[i&mask]))
		h.Add(time.Since(turn))
		turn = turn.Add(interval)
	}
	return h
}

// Begin begins calls at a fixed rate, whatever became of those before, for the time d.
// It returns how long after its turn each call ended, after all have ended.
func Begin(rate int, d time.Duration, call func(i int)) *Histogram {
	var mu sync.Mutex
	var calls sync.WaitGroup
	all := new(Histogram)
	start := time.Now()
	for i := 0; ; i++ {
		turn := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if turn.Sub(start) >= d {
			break
		}
		pause(turn)
		calls.Go(func() {
			call(i)
			took := time.Since(turn)
			mu.Lock()
			all.Add(took)
			mu.Unlock()
		})
	}
	calls.Wait()
	return all
}

// Beside is a heap of pointers and a goroutine that makes garbage, as the rest of a
// program does. The garbage collector scans the heap again and again.
type Beside struct {
	nodes []*node
	stop  chan struct{}
	ended sync.WaitGroup
}

// node is an object of 64 bytes.
type node struct {
	next *node
	_    [7]uint64
}

// NewBeside allocates n nodes, and replaces some of them all the time: at most the
// given bytes a second. Close stops it.
func NewBeside(n, bytes int) *Beside {
	b := &Beside{nodes: make([]*node, n), stop: make(chan struct{})}
	first := new(node)
	for i := range b.nodes {
		b.nodes[i] = &node{next: first}
	}
	const tick = time.Millisecond
	each := max(1, bytes/64/int(time.Second/tick))
	b.ended.Go(func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for at := 0; ; {
			select {
			case <-b.stop:
				return
			case <-ticks.C:
			}
			for range each {
				b.nodes[at] = &node{next: first}
				at = (at + 1) % len(b.nodes)
			}
		}
	})
	return b
}

// Close stops the goroutine and frees the heap.
func (b *Beside) Close() {
	close(b.stop)
	b.ended.Wait()
	b.nodes = nil
}

// Collections returns the number of garbage collections so far.
func Collections() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.NumGC)
}
