package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
)

// The benchmarks of this file and BenchmarkColdStart are a harness: they measure how
// calls fare in cold starts, short stalls and far networks, and fail above the aims.
// Run them by themselves:
//
//	go test ./store/redisstore -run '^$' -bench 'ColdStart|Stall|Distance' -benchtime 1x

// BenchmarkStall makes a server stand still for a moment, at 4,000 calls a second.
// The number of outages is only slightly above that of the calls that waited for all of their time.
func BenchmarkStall(b *testing.B) {
	for _, test := range []struct{ timeout, stall time.Duration }{
		{10 * time.Millisecond, 15 * time.Millisecond}, {10 * time.Millisecond, 30 * time.Millisecond},
		{50 * time.Millisecond, 75 * time.Millisecond}, {50 * time.Millisecond, 150 * time.Millisecond},
	} {
		for _, callers := range []int{16, 64} {
			b.Run(fmt.Sprintf("timeout=%v/stall=%v/callers=%d", test.timeout, test.stall, callers), func(b *testing.B) {
				n := redistest.Server(b, "--enable-debug-command", "yes")
				s := openURL(b, fmt.Sprintf("redis://%s?timeout=%v", n.Addr(), test.timeout))
				for b.Loop() {
					late, degraded := stall(b, n, s, callers, test.timeout, test.stall)
					ratio := float64(degraded) / float64(max(late, 1))
					b.ReportMetric(float64(late), "late")
					b.ReportMetric(float64(degraded), "degraded")
					b.ReportMetric(ratio, "ratio")
					if ratio > 1.2 {
						b.Errorf("got %d degraded of %d late calls, want 1.2 times as many at most", degraded, late)
					}
				}
			})
		}
	}
}

// stall makes callers take while n sleeps, five times. It returns how many of their
// calls waited for all of their time, and how many met an outage.
func stall(b *testing.B, n *redistest.Node, s store.Store, callers int, timeout, sleep time.Duration) (late, degraded int64) {
	var met, waited, answered atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			ops := []store.Op{hourly(quota, "rule", "k")}
			every := time.NewTicker(time.Duration(callers) * time.Second / 4000)
			defer every.Stop()
			for ctx.Err() == nil {
				<-every.C
				began := time.Now()
				err := store.Do(context.Background(), s, store.Take, ops)
				var out *store.OutageError
				if !errors.As(err, &out) {
					answered.Add(1)
					continue
				}
				met.Add(1)
				if time.Since(began) >= timeout {
					waited.Add(1)
				}
			}
		})
	}
	more := func(calls int64) {
		before := answered.Load()
		redistest.Eventually(b, "calls are answered", func() bool { return answered.Load() > before+calls })
	}
	more(1000)
	met.Store(0)
	waited.Store(0)
	for range 5 {
		n.Must("DEBUG", "SLEEP", fmt.Sprint(sleep.Seconds()))
		more(1000)
	}
	cancel()
	calling.Wait()
	return waited.Load(), met.Load()
}

// BenchmarkDistance makes 10,000 calls at a steady 1,000 a second to a server that
// is far away, from the first call on and again after all connections were reset.
func BenchmarkDistance(b *testing.B) {
	for trip, most := range map[time.Duration]int{
		0: 0, 2 * time.Millisecond: 0, 6 * time.Millisecond: 0, 20 * time.Millisecond: 0, 40 * time.Millisecond: 10,
	} {
		b.Run(fmt.Sprintf("trip=%v", trip), func(b *testing.B) {
			n := redistest.Server(b)
			p := redistest.Through(b, n)
			p.Delay(trip / 2)
			for b.Loop() {
				s := openURL(b, "redis://"+p.Addr())
				cold, excused := steady(s, 10_000, trip)
				p.Reset()
				redistest.Eventually(b, "the store answers again", func() bool {
					return !s.Nodes()[0].Unavailable && store.Do(context.Background(), s, store.Check, []store.Op{hourly(quota, "rule", "k")}) == nil
				})
				after, more := steady(s, 10_000, trip)
				b.ReportMetric(float64(cold), "cold")
				b.ReportMetric(float64(after), "reset")
				b.ReportMetric(float64(excused+more), "paused")
				b.Logf("outages: %v, circuit breaker opened %d times", s.Nodes()[0].Outages, s.Nodes()[0].Interruptions)
				if max(cold, after) > most {
					b.Errorf("degraded: got %d cold and %d after a reset, want %d at most", cold, after, most)
				}
			}
		})
	}
}

// steady makes calls at a steady 1,000 a second to a server that is so far away. It
// returns how many met an outage. Those for which the machine did not run this
// process or the server for half of the time that the trip leaves are excused.
func steady(s store.Store, calls int, trip time.Duration) (lost, excused int) {
	var mu sync.Mutex
	var met []outcome
	var m machine
	ctx, cancel := context.WithCancel(context.Background())
	var watching, calling sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for made := 0; made < calls; {
		<-tick.C
		for ; made < calls && time.Duration(made)*time.Millisecond <= time.Since(began); made++ {
			calling.Go(func() {
				o := outcome{began: time.Now()}
				if store.Do(context.Background(), s, store.Take, []store.Op{hourly(quota, "rule", "k")}) != nil {
					o.took = time.Since(o.began)
					mu.Lock()
					met = append(met, o)
					mu.Unlock()
				}
			})
		}
	}
	calling.Wait()
	time.Sleep(10 * time.Millisecond) // so that the watches have seen the last pause
	cancel()
	watching.Wait()
	for _, o := range met {
		if m.during(o.began, o.began.Add(o.took)) >= (defaultTimeout-trip)/2 {
			excused++
		} else {
			lost++
		}
	}
	return lost, excused
}
