package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// growth measures single calls while tables grow and expire.
func growth(s settings) (*report.Table, error) {
	keys := measure.NewKeys(s.grown)
	subjects := []func() (measure.Subject, error){
		nothing,
		newMemory(s.grown),
		plainMap,
		weirTable("weir bucket", weir.Bucket(100, time.Minute, 0)),
		weirTable("weir sliding, exact", weir.Sliding(100, time.Minute)),
	}
	names := make([]string, len(subjects))
	var failed error
	var jobs []func() measure.Numbers
	for i, start := range subjects {
		jobs = append(jobs, func() measure.Numbers {
			runtime.GC()
			subject, err := start()
			if err != nil {
				failed = err
				return make(measure.Numbers, 11)
			}
			names[i] = subject.Name
			g := measure.Grow(subject, keys)
			return append(append(callTimes(&g.Grow), callTimes(&g.Shrink)...), g.Left)
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: "Growing and shrinking without a pause",
		Text: fmt.Sprintf("The time of each single call while a table grows from nothing to %s keys, and while all of them expire, on one core. "+
			"The empty call shows the influence of the machine itself (scheduler, interrupts, garbage collector), and the row below it what the system needs for new memory. "+
			"*busy*: slow calls during which the thread ran for over a millisecond; during the others, something else had the core.", report.Number(float64(s.grown))),
		Head: []string{
			"", "growing: p50", "p99.99", "max", "over 1 ms", "of them busy",
			"expiring: p50", "p99.99", "max", "over 1 ms", "of them busy", "keys left",
		},
		Notes: []string{"The plain map is swept part by part: every 1000 calls, one of its 256 parts under its lock. A program would write this itself."},
	}
	for i, n := range numbers {
		s.found.keep("growth", names[i], []float64{n[3], n[4], n[8], n[7]}, "slow", "busy", "slow expiring", "max expiring")
		var cells []string
		for part := range 2 {
			for column := range 3 {
				cells = append(cells, report.Time(n[5*part+column]))
			}
			cells = append(cells, report.Number(n[5*part+3]), report.Number(n[5*part+4]))
		}
		t.Row(names[i], append(cells, report.Share(n[10]))...)
	}
	return t, nil
}

// callTimes returns the numbers of some calls for a row.
func callTimes(c *measure.Calls) measure.Numbers {
	return measure.Numbers{
		float64(c.At(0.5)), float64(c.At(0.9999)), float64(c.Max()), float64(c.Slow()), float64(c.Busy),
	}
}

func nothing() (measure.Subject, error) {
	return measure.Subject{
		Name: "raw: an empty call", Allow: func(string) bool { return true },
		Expire: func() {}, Len: func() int { return 0 }, Close: func() {},
	}, nil
}

// newMemory returns a subject whose calls do nothing but write to memory that the
// process has not used before, 45 bytes a call, which is what a key of weir takes.
func newMemory(calls int) func() (measure.Subject, error) {
	const each = 45
	return func() (measure.Subject, error) {
		memory, at := make([]byte, each*calls), 0
		return measure.Subject{
			Name: "raw: 45 bytes of new memory",
			Allow: func(string) bool {
				if at < len(memory) {
					memory[at] = 1
					at += each
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
