package memstore_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

const benchKeys = 1_000_000

// draw returns the numbers of a million keys in the order of the calls.
func draw(name string) []uint32 {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, benchKeys-1)
	draws := make([]uint32, 1<<20)
	for i := range draws {
		switch name {
		case "uniform":
			draws[i] = rng.Uint32N(benchKeys)
		case "zipf":
			draws[i] = uint32(zipf.Uint64())
		}
	}
	return draws
}

// BenchmarkTake measures one op a call.
func BenchmarkTake(b *testing.B) {
	limits := []window.Limit{
		{Quota: 1000, Window: window.Bucket(time.Minute, 0)},
		{Quota: 20, Window: window.Sliding(time.Minute)},
		{Quota: 1000, Window: window.Calendar(window.Day, nil)},
	}
	for _, keys := range []string{"hot", "zipf", "uniform"} {
		draws := draw(keys)
		for _, l := range limits {
			limit := window.MustCompile(l)
			b.Run(fmt.Sprintf("%v/keys=%s", l.Window.Kind, keys), func(b *testing.B) {
				s := memstore.New()
				space := store.NewSpace("", "s", "", 0)
				run(b, draws, func() func(key []byte) {
					ops := []store.Op{{Space: space, Limit: limit, N: 1}}
					calls := []store.Call{{Verb: store.Take, Ops: ops}}
					return func(key []byte) {
						ops[0].Key = key
						do(b, s, calls)
					}
				})
				if n := keysOf(s, "s"); n > 1 {
					b.ReportMetric(float64(bytes(s))/float64(n), "bytes/key")
				}
			})
		}
	}
}

// BenchmarkTakeOps measures several ops in one call, of different spaces: for the same key,
// and each for a key of its own.
func BenchmarkTakeOps(b *testing.B) {
	limit := window.MustCompile(window.Limit{Quota: 1000, Window: window.Bucket(time.Minute, 0)})
	for _, n := range []int{1, 3, 8} {
		for _, keys := range []int{1, n}[:min(n, 2)] {
			b.Run(fmt.Sprintf("ops=%d/keys=%d", n, keys), func(b *testing.B) {
				s := memstore.New()
				var ops []store.Op
				for i := range n {
					ops = append(ops, hit(fmt.Sprint("space", i), limit, fmt.Sprint("some key ", i%keys)))
				}
				calls := []store.Call{{Verb: store.Take, Ops: ops}}
				b.ReportAllocs()
				for b.Loop() {
					do(b, s, calls)
				}
			})
		}
	}
}

// BenchmarkTakeApart measures calls of three spaces, each for one of ten thousand keys, and
// calls for such a key and a key that all calls have.
func BenchmarkTakeApart(b *testing.B) {
	limit := window.MustCompile(window.Limit{Quota: 1 << 30, Window: window.Fixed(time.Hour)})
	keys := make([][]byte, 10_000)
	for i := range keys {
		keys[i] = fmt.Append(nil, "key ", i)
	}
	for _, row := range []struct {
		name string
		n    int // of keys of its own, in a call
		more []store.Op
	}{
		{"three keys", 3, nil},
		{"one key and a common one", 1, []store.Op{hit("all", limit, "all")}},
	} {
		b.Run(row.name, func(b *testing.B) {
			s := memstore.New()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(rand.Uint64(), 1))
				ops := make([]store.Op, 0, 3)
				for i := range row.n {
					ops = append(ops, hit(fmt.Sprint("space", i), limit, ""))
				}
				ops = append(ops, row.more...)
				calls := []store.Call{{Verb: store.Take, Ops: ops}}
				for pb.Next() {
					for i := range ops[:row.n] {
						ops[i].Key = keys[r.IntN(len(keys))]
					}
					do(b, s, calls)
				}
			})
		})
	}
}

// BenchmarkExpiry measures one hit on a new key a call, while as many keys
// expire: a table of a hundred thousand that is never the same.
func BenchmarkExpiry(b *testing.B) {
	for _, l := range []window.Limit{
		{Quota: 10, Window: window.Bucket(time.Second, 0)},
		{Quota: 20, Window: window.Sliding(100 * time.Millisecond)},
	} {
		b.Run(l.Window.Kind.String(), func(b *testing.B) {
			now := window.Instant(1e15)
			s := memstore.New(memstore.WithMachine(func() (steady, wall window.Instant) { return now, now }))
			ops := []store.Op{hit("s", window.MustCompile(l), "")}
			calls := []store.Call{{Verb: store.Take, Ops: ops}}
			key := make([]byte, 4)
			ops[0].Key = key
			next := func() {
				now++ // both windows keep a key for 100 ms
				binary.BigEndian.PutUint32(key, uint32(now))
				do(b, s, calls)
			}
			for range 300_000 {
				next()
			}
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(bytes(s))/float64(keysOf(s, "s")), "bytes/key")
		})
	}
}

// run measures the function that start returns, one in each goroutine, with the
// keys drawn, after all keys were used once.
func run(b *testing.B, draws []uint32, start func() func(key []byte)) {
	key := func(buf []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(buf[:0], n) }
	take, buf := start(), make([]byte, 4)
	for _, n := range draws {
		take(key(buf, n))
	}
	var turn atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		take, buf := start(), make([]byte, 4)
		for i := turn.Add(1) << 16; pb.Next(); i++ {
			take(key(buf, draws[int(i)%len(draws)]))
		}
	})
}
