// Package measure calls limiters and measures time, memory and what they admit. Every number is the median of
// rounds in which all rows take turns, so that a noisy minute of the machine affects all rows equally.
package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Numbers are the results of one turn of a row, by column. NaN is "none".
type Numbers []float64

// None returns NaN, which means no number.
func None() float64 { return math.NaN() }

// failure is an error that ends what Try runs.
type failure struct{ error }

// Must returns v. An error ends what [Try] runs.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check lets an error end what [Try] runs.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Try runs f, and returns the error that has ended it. An error of a benchmark ends the whole table, so intermediate
// functions need not handle it.
func Try(f func()) (err error) {
	defer func() {
		r := recover()
		if f, ok := r.(failure); ok {
			err = f.error
		} else if r != nil {
			panic(r)
		}
	}()
	f()
	return nil
}

// Rounds runs the jobs in turns, n times, and returns the median of each number of each job.
func Rounds(n int, jobs []func() Numbers) []Numbers {
	turns, medians := make([][]Numbers, len(jobs)), make([]Numbers, len(jobs))
	for range n {
		for i, job := range jobs {
			turns[i] = append(turns[i], job())
		}
	}
	for i, t := range turns {
		medians[i] = Medians(t)
	}
	return medians
}

// Medians returns the medians of the numbers of some turns: the middle value, the lower one of two, or NaN without
// values.
func Medians(turns []Numbers) Numbers {
	medians := make(Numbers, len(turns[0]))
	for column := range medians {
		var values []float64
		for _, t := range turns {
			if !math.IsNaN(t[column]) {
				values = append(values, t[column])
			}
		}
		slices.Sort(values)
		if medians[column] = None(); len(values) > 0 {
			medians[column] = values[(len(values)-1)/2]
		}
	}
	return medians
}

// NewHistogram returns an empty histogram of nanoseconds, to a percent.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 2) }

// Share returns the nanoseconds that the given share of all times does not exceed.
func Share(h *hdrhistogram.Histogram, share float64) float64 {
	return float64(h.ValueAtQuantile(100 * share))
}

const keyLength = 24

// Keys are strings in one block of memory, so that the garbage collector has nothing to scan, and calls need not make
// keys.
type Keys struct{ text string }

// NewKeys returns n keys.
func NewKeys(n int) Keys {
	var b strings.Builder
	b.Grow(n * keyLength)
	for i := range n {
		fmt.Fprintf(&b, "user:%0*d", keyLength-len("user:"), i)
	}
	return Keys{b.String()}
}

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.text) / keyLength }

// At returns the key with the number i.
func (k Keys) At(i uint32) string {
	at := int(i) * keyLength
	return k.text[at : at+keyLength]
}

// From returns the keys from number i on.
func (k Keys) From(i int) Keys { return Keys{k.text[i*keyLength:]} }

// Draw is a series of key numbers, which repeats. Its length is a power of two.
type Draw []uint32

// One returns a series of the first key only.
func One() Draw { return Draw{0} }

// Each returns a series of n keys in turn.
func Each(n int) Draw { return draw(func(i int) uint32 { return uint32(i % n) }) }

// Uniform returns a series in which n keys are equally frequent.
func Uniform(n int) Draw {
	rng := rand.New(rand.NewPCG(1, 2))
	return draw(func(int) uint32 { return rng.Uint32N(uint32(n)) })
}

// Zipf returns a series in which a few of n keys are frequent, as in real traffic, with exponent 1.1. Frequent
// keys are not adjacent in memory.
func Zipf(n int) Draw {
	rng := rand.New(rand.NewPCG(3, 4))
	zipf, place := rand.NewZipf(rng, 1.1, 1, uint64(n-1)), rng.Perm(n)
	return draw(func(int) uint32 { return uint32(place[zipf.Uint64()]) })
}

func draw(next func(i int) uint32) Draw {
	d := make(Draw, 1<<21)
	for i := range d {
		d[i] = next(i)
	}
	return d
}

// Speed has the cost of calls.
type Speed struct {
	Nanoseconds float64 // wall-clock time per call of all goroutines together
	Allocs      float64 // allocations per call
	Calls       float64
	Admitted    float64 // share of the calls
	Waiting     float64 // share of the goroutines' time in which they waited for a mutex
}

// batch is the number of calls between two reads of the clock.
const batch = 512

// Measure calls allow for about the time d, from as many goroutines as cores. The program uses no more cores during
// that time. Each goroutine starts at a different position in the series of keys.
func Measure(allow func(string) bool, keys Keys, draw Draw, cores int, d time.Duration) Speed {
	return MeasureGoroutines(allow, keys, draw, cores, cores, d)
}

// MeasureGoroutines calls allow like Measure, from a given number of goroutines.
func MeasureGoroutines(allow func(string) bool, keys Keys, draw Draw, cores, goroutines int, d time.Duration) Speed {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var (
		before, after   runtime.MemStats
		calls, admitted atomic.Int64
		all             sync.WaitGroup
		begin           = make(chan time.Time)
	)
	for worker := range goroutines {
		all.Go(func() {
			at, mask, yes := worker*(len(draw)/goroutines), len(draw)-1, 0
			i := at
			for start := <-begin; time.Since(start) < d; {
				for end := i + batch; i < end; i++ {
					if allow(keys.At(draw[i&mask])) {
						yes++
					}
				}
			}
			calls.Add(int64(i - at))
			admitted.Add(int64(yes))
		})
	}
	runtime.ReadMemStats(&before)
	waited := mutexWait()
	start := time.Now()
	for range goroutines {
		begin <- start
	}
	all.Wait()
	took := time.Since(start)
	waited = mutexWait() - waited
	runtime.ReadMemStats(&after)
	n := float64(calls.Load())
	waiting := min(1, waited/(took.Seconds()*float64(goroutines))) // the runtime estimates it from samples
	return Speed{float64(took) / n, float64(after.Mallocs-before.Mallocs) / n, n, float64(admitted.Load()) / n, waiting}
}

// mutexWait returns the seconds that goroutines have waited for mutexes, in sum. Time that a goroutine spins
// before it waits is not in it.
func mutexWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

// Fill calls allow hits times for every key. Each key has separate memory, as keys of requests do, so a limiter that
// keeps the key pays for it.
func Fill(allow func(string) bool, keys Keys, hits int) {
	for range max(1, hits) {
		for i := range keys.Len() {
			allow(strings.Clone(keys.At(uint32(i))))
		}
	}
}

// betweenCollections is the pause before and after a garbage collection that is measured.
const betweenCollections = 5 * time.Millisecond

// Heap returns the bytes in use after a garbage collection. Pools and finalizers, which end some peers'
// goroutines, hold memory until a second and a third collection.
func Heap() (bytes float64) {
	for range 3 {
		runtime.GC()
		time.Sleep(betweenCollections)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// Collection returns the milliseconds of one garbage collection on one core, as the median of 3 to 15. On more
// cores a collection of a small heap mostly waits for threads to wake up, and sweeping wakes one up after each
// span of memory.
func Collection() float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns []float64
	for begin := time.Now(); len(turns) < 3 || len(turns) < 15 && time.Since(begin) < 200*time.Millisecond; {
		start := time.Now()
		runtime.GC()
		turns = append(turns, float64(time.Since(start))/float64(time.Millisecond))
		time.Sleep(betweenCollections)
	}
	slices.Sort(turns)
	return turns[(len(turns)-1)/2]
}

// Collections returns the number of garbage collections so far.
func Collections() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.NumGC)
}

// Expire fills a limiter with a short window, waits until all keys have expired, and then calls it for a few other
// keys, every 10 µs, for the time d. It returns the share of the memory that is still in use, and the slowest call
// of the light traffic.
func Expire(allow func(string) bool, keys, others Keys, window, d time.Duration) (left float64, slow time.Duration) {
	empty := Heap()
	Fill(allow, keys, 1)
	full := Heap()
	time.Sleep(window)
	const calls = 100 // between two pauses
	for start, i := time.Now(), 0; time.Since(start) < d; time.Sleep(calls * 10 * time.Microsecond) {
		for range calls {
			before := time.Now()
			allow(others.At(uint32(i % others.Len())))
			slow = max(slow, time.Since(before))
			i++
		}
	}
	rest := Heap()
	runtime.KeepAlive(allow)              // else it may be collected before
	if full-empty < float64(keys.Len()) { // it kept no keys
		return None(), slow
	}
	return max(0, rest-empty) / (full - empty), slow
}

// node is an object of 64 bytes.
type node struct {
	next *node
	_    [7]uint64
}

// AllocateInBackground allocates n nodes, and replaces some of them continuously until stop is called: at most the given
// bytes a second. The garbage collector therefore scans a heap of pointers repeatedly, as in the rest of a program.
func AllocateInBackground(n, bytes int) (stop func()) {
	nodes, first, done := make([]*node, n), new(node), make(chan struct{})
	for i := range nodes {
		nodes[i] = &node{next: first}
	}
	var all sync.WaitGroup
	all.Go(func() {
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		for at := 0; ; {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			for range max(1, bytes/64/1000) {
				nodes[at] = &node{next: first}
				at = (at + 1) % n
			}
		}
	})
	return func() {
		close(done)
		all.Wait()
	}
}
