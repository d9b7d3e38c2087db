package main

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// growthTurns is the least number of turns of the section growth.
const growthTurns = 3

// grown are the calls of a row in all turns.
type grown struct {
	name         string
	grow, shrink calls
	left         float64
}

// calls are the calls of one kind: all times together, and numbers of each turn.
type calls struct {
	measure.Histogram
	slow, busy []uint64
}

func (c *calls) add(turn *measure.Calls) {
	c.Merge(&turn.Histogram)
	c.slow, c.busy = append(c.slow, turn.Slow()), append(c.busy, turn.Busy)
}

// cells returns the numbers for a row.
func (c *calls) cells() []string {
	return []string{
		report.Time(float64(c.At(0.5))), report.Time(float64(c.At(0.9999))), report.Time(float64(c.Max())), span(c.slow), span(c.busy),
	}
}

// span returns the least and the largest of some numbers as text.
func span(n []uint64) string {
	least, most := report.Number(float64(slices.Min(n))), report.Number(float64(slices.Max(n)))
	if least == most {
		return least
	}
	return least + " to " + most
}

// growth measures single calls while tables grow and expire.
func growth(s settings) (*report.Table, error) {
	keys := measure.NewKeys(s.grown)
	subjects := []func() (measure.Subject, error){
		nothing,
		newMemory("raw: 45 bytes of new memory", s.grown, 0),
		newMemory(readsRow, s.grown, 3),
		plainMap,
		weirTable(bucketRow, weir.Bucket(100, time.Minute, 0)),
		weirTable(exactRow, weir.Sliding(100, time.Minute)),
	}
	turns, rows := max(s.rounds, growthTurns), make([]grown, len(subjects))
	for range turns {
		for i, start := range subjects {
			runtime.GC()
			subject, err := start()
			if err != nil {
				return nil, err
			}
			g := measure.Grow(subject, keys)
			rows[i].name = subject.Name
			rows[i].grow.add(&g.Grow)
			rows[i].shrink.add(&g.Shrink)
			rows[i].left = max(rows[i].left, g.Left)
		}
	}
	t := &report.Table{
		Title: "Growing and shrinking without a pause",
		Text: fmt.Sprintf("The time of each single call while a table grows from nothing to %s keys, and while all of them expire, on one core, in %d turns. *max*: of all turns. *over 1 ms*: the fewest and the most of such calls in a turn. "+
			"*busy*: those of them during which the thread ran for over a millisecond; during the others, something else had the core. "+
			"A pause that a table makes itself comes in every turn, because all turns take the same steps: it is in the fewest. "+
			"The empty call shows the influence of the machine itself (scheduler, interrupts, garbage collector); it is made %d times for each key. "+
			"In a virtual machine a thread also runs, by the system's clock, while the host gets memory for it: a single access to memory then takes milliseconds. "+
			"The row with reads shows that: it has no table. Each call writes new memory and reads three places of what is written, so that the row takes about as long as weir's.",
			report.Number(float64(s.grown)), turns, emptyTimes),
		Head: []string{
			"", "growing: p50", "p99.99", "max", "over 1 ms", "of them busy",
			"expiring: p50", "p99.99", "max", "over 1 ms", "of them busy", "keys left",
		},
		Notes: []string{"The plain map is swept part by part: every 1000 calls, one of its 256 parts under its lock. A program would write this itself."},
	}
	for i := range rows {
		r := &rows[i]
		t.Row(r.name, append(append(r.grow.cells(), r.shrink.cells()...), report.Share(r.left))...)
		s.found.keep("growth", r.name, []float64{
			float64(slices.Min(r.grow.busy)), float64(slices.Max(r.grow.busy)), float64(slices.Min(r.shrink.slow)), float64(slices.Max(r.shrink.slow)),
		}, "busy", "most busy", "slow expiring", "most slow expiring")
	}
	return t, nil
}

// emptyTimes is how many empty calls are made for each key: they take about a quarter
// of the time of a call of weir for a new key.
const emptyTimes = 4

func nothing() (measure.Subject, error) {
	return measure.Subject{
		Name: "raw: an empty call", Times: emptyTimes, Allow: func(string) bool { return true },
		Expire: func() {}, Len: func() int { return 0 }, Close: func() {},
	}, nil
}

// newMemory returns a subject whose calls write to memory that the process has not used
// before, 45 bytes a call, which is what a key of weir takes. Then they read at some places
// of what is written, which are not in the processor's cache, each after the one before.
func newMemory(name string, calls, reads int) func() (measure.Subject, error) {
	const each = 45
	return func() (measure.Subject, error) {
		memory, at, random := make([]byte, each*calls), 0, uint64(1)
		return measure.Subject{
			Name: name,
			Allow: func(string) bool {
				if at+each <= len(memory) {
					memory[at] = 1
					at += each
				}
				for range reads {
					random = random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
					place, _ := bits.Mul64(random, uint64(at))
					random += uint64(memory[place])
				}
				return true
			},
			Expire: func() {}, Len: func() int { return 0 }, Close: func() {},
		}, nil
	}
}

func plainMap() (measure.Subject, error) {
	m := peer.NewShards(scarce())
	calls, expired := 0, false
	return measure.Subject{
		Name: "raw: 256 mutex + map shards, GCRA",
		Allow: func(key string) bool {
			if calls++; expired && calls%1000 == 0 {
				m.Sweep(calls/1000, scarce().Window)
			}
			return m.Allow(key)
		},
		Expire: func() { expired = true }, Len: m.Len, Close: func() {},
	}, nil
}

// weirTable returns a limiter with a settable clock.
func weirTable(name string, limit weir.Limit) func() (measure.Subject, error) {
	return func() (measure.Subject, error) {
		var skipped atomic.Int64 // microseconds
		s := memstore.New(memstore.WithClock(func() window.Instant {
			return window.Instant(time.Now().UnixMicro() + skipped.Load())
		}))
		l, err := weir.NewLimiter(limit, weir.WithStore(s), weir.WithName(name), weir.WithMaxKeys(100_000_000))
		if err != nil {
			return measure.Subject{}, err
		}
		ctx := context.Background()
		return measure.Subject{
			Name: name,
			Allow: func(key string) bool {
				r, err := l.Allow(ctx, key)
				return err == nil && r.Allowed
			},
			// With a given clock, keys stay for an hour after they expire.
			Expire: func() { skipped.Add(2 * time.Hour.Microseconds()) },
			Len: func() (n int) {
				for _, st := range s.Stats() {
					n += int(st.Keys)
				}
				return n
			},
			Close: func() { _ = s.Close() }, // a store in memory closes without error
		}, nil
	}
}
