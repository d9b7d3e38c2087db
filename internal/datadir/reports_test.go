package datadir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// far is a shared store that can be unavailable to a process, and that a process
// which was killed cannot reach any more.
type far struct {
	storetest.Opened
	away atomic.Bool
}

// link is how one process reaches a far store.
type link struct {
	*far
	killed atomic.Bool
}

func (l *link) Do(ctx context.Context, calls []store.Call) error {
	l.Set(window.At(time.Now()))
	if l.away.Load() || l.killed.Load() {
		for i := range calls {
			calls[i].Err = &store.OutageError{Reason: "circuit-open", Err: errors.New("away"), Uncounted: true}
		}
		return nil
	}
	return l.Store.Do(ctx, calls)
}

func (l *link) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	l.Set(window.At(time.Now()))
	if l.away.Load() || l.killed.Load() {
		return window.Reading{}, &store.OutageError{Reason: "circuit-open", Err: errors.New("away"), Uncounted: true}
	}
	return l.Store.Read(ctx, op)
}

func (l *link) Forget(ctx context.Context, op *store.Op) error { return l.Store.Forget(ctx, op) }

func (l *link) Close() error { return nil }

func (l *far) used(t *testing.T, key int) int64 {
	t.Helper()
	l.Set(window.At(time.Now()))
	r, err := l.Store.Read(t.Context(), pendingOp(key))
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

var pendingLimit = window.MustCompile(window.Limit{Quota: 1_000_000, Window: window.Sliding(24 * time.Hour)})

func pendingOp(key int) *store.Op {
	return &store.Op{Space: space, Limit: pendingLimit, Key: fmt.Append(nil, key)}
}

// What waits to be reported to a shared store survives kills and orderly ends. The
// shared store learns of each hit that was written before the kill, unless its report was
// on the way, and never twice.
func TestReportsAreKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		synctest.Test(t, func(t *testing.T) { reportsAreKept(t, seed) })
	}
}

func reportsAreKept(t *testing.T, seed uint64) {
	const keys = 5
	r := rand.New(rand.NewPCG(seed, 5))
	f := &far{Opened: storetest.NewModel()}
	disk := datadir.NewDisk()
	var least, most [keys]int64
	for process := range 6 {
		f.away.Store(true)
		s := mustOpen(t, disk, datadir.WithInterval(200*time.Millisecond))
		to := &link{far: f}
		reports := report.New(to, s)
		// The disk has the numbers of some moment since the last pause: the least of them
		// are low, the most high.
		var added, low, high [keys]int64
		for range 1 + r.IntN(60) {
			key := r.IntN(keys)
			n := 1 + r.Int64N(3)
			reports.Add(pendingOp(key), pendingLimit, n)
			added[key] += n
			high[key] = max(high[key], added[key])
			if r.IntN(4) == 0 && added[key] > 0 {
				reports.Sub(pendingOp(key), 1)
				added[key]--
			}
			low[key] = min(low[key], added[key])
			if r.IntN(5) == 0 {
				time.Sleep(250 * time.Millisecond)
				low, high = added, added
			}
		}
		sure := true
		if r.IntN(3) == 0 || process == 5 { // the shared store is back
			f.away.Store(false)
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			if sure = reports.Stats().Pending == 0; sure {
				low, high = added, added
			}
		}
		end := r.IntN(3) == 0 || process == 5
		if end {
			low, high = added, added
			reports.Close()
		}
		left := disk.Clone()
		to.killed.Store(!end)
		if !end {
			reports.Close()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !end {
			disk = left
		}
		for key := range keys {
			if most[key] += high[key]; sure {
				least[key] += low[key]
			} else {
				least = [keys]int64{} // a report was on the way
			}
		}
	}
	f.away.Store(false)
	s := mustOpen(t, disk)
	last := report.New(&link{far: f}, s)
	time.Sleep(5 * time.Second)
	if st := last.Stats(); st.Pending != 0 || st.Dropped != 0 {
		t.Errorf("seed %d: got %+v at the end, want nothing pending or dropped", seed, st)
	}
	last.Close()
	for key := range keys {
		if got := f.used(t, key); got < least[key] || got > most[key] {
			t.Errorf("seed %d, key %d: got %d in the shared store, want %d to %d", seed, key, got, least[key], most[key])
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Holds that wait for a report keep their ids and ends.
func TestReportsOfHoldsAreKept(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 10, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: 10 * time.Minute})
	synctest.Test(t, func(t *testing.T) {
		f := &far{Opened: storetest.NewModel()}
		f.away.Store(true)
		disk := datadir.NewDisk()
		s := mustOpen(t, disk)
		reports := report.New(&link{far: f}, s)
		op := &store.Op{Space: space, Limit: limit, Key: []byte("team"), Together: []byte("t"), N: 4}
		op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{7}}}
		op.Hold.Decided = window.At(time.Now())
		reports.Hold(op, limit, 4, false)
		reports.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, disk)
		defer s.Close()
		f.away.Store(false)
		reports = report.New(&link{far: f}, s)
		defer reports.Close()
		time.Sleep(3 * time.Second)
		settle := *op
		settle.N = 1
		if err := store.Do(t.Context(), f.Store, store.Settle, []store.Op{settle}); err != nil {
			t.Fatal(err)
		}
		got, err := f.Store.Read(t.Context(), op)
		if err != nil || got.Used != 1 {
			t.Errorf("after a settle in the shared store: got %+v, %v, want 1 used", got, err)
		}
	})
}

// If a part of the directory is damaged, it is not certain what was reported. It is
// not reported then.
func TestReportsAfterDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &far{Opened: storetest.NewModel()}
		f.away.Store(true)
		disk := fill(t, 3, 4)
		s := mustOpen(t, disk)
		reports := report.New(&link{far: f}, s)
		reports.Add(pendingOp(1), pendingLimit, 3)
		reports.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		name := disk.Names()[0]
		data := disk.Data(name)
		data[len(data)/4] ^= 1
		disk.Put(name, data)
		for range 2 {
			f.away.Store(false)
			s = mustOpen(t, disk)
			reports = report.New(&link{far: f}, s)
			time.Sleep(3 * time.Second)
			if n := f.used(t, 1); n != 0 {
				t.Errorf("got %d hits reported, want none", n)
			}
			reports.Close()
			s.Close()
		}
	})
}

// What waits to be reported ages by the time that has passed between two processes, as the counters do, whatever was done to
// the wall clock.
func TestReportsWhenTheClockIsSetBetweenProcesses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		passed, shown time.Duration // between the two, really and by the wall clock
		want          int64
	}{
		{"nothing was set", time.Hour, time.Hour, 5},
		{"set ahead two days", time.Hour, 49 * time.Hour, 5},
		{"set back two days", time.Hour, -47 * time.Hour, 5},
		{"set back two days, and the window has passed", 25 * time.Hour, -23 * time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			disk, up := datadir.NewDisk(), int64(1e9)
			run := func(shown time.Duration, away bool, f func(far *far, r *report.Reporter)) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(shown)
					s := mustOpen(t, disk, datadir.WithMachine(&up, 1))
					defer s.Close()
					shared := &far{Opened: storetest.NewModel()}
					shared.away.Store(away)
					r := report.New(&link{far: shared}, s)
					defer r.Close()
					f(shared, r)
				})
			}
			const week = 7 * 24 * time.Hour // since the clock of a bubble begins
			run(week, true, func(_ *far, r *report.Reporter) { r.Add(pendingOp(1), pendingLimit, 5) })
			up += test.passed.Microseconds()
			run(week+test.shown, false, func(shared *far, r *report.Reporter) {
				time.Sleep(3 * time.Second)
				if st, used := r.Stats(), shared.used(t, 1); used != test.want || st.Recorded != test.want || st.Pending != 0 {
					t.Errorf("got %d used and %+v, want %d recorded", used, st, test.want)
				}
			})
		})
	}
}

// A batch in an outage waits for the disk once, like a single call, and not for each of its items. What it has changed is on
// the disk then: the counters, and what waits for the report.
func TestBatchesOfOutagesWaitOnce(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{{
		Name: "tokens", Per: []string{"user"}, Measure: window.Sum, Of: "cost", Quota: &rule.Quota{Value: 9}, Window: window.Fixed(time.Hour), Hold: 10 * time.Minute,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f, disk := &far{Opened: storetest.NewModel()}, datadir.NewDisk()
		f.away.Store(true)
		s := mustOpen(t, disk, datadir.WithSync(datadir.Always))
		e, err := weir.NewEngine(set, weir.WithStore(&link{far: f}), weir.WithLocal(s, 1))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		disk.SetPause(func() { time.Sleep(10 * time.Millisecond) })
		batch := make([]weir.Item, 300)
		do := func(verb store.Verb, hits int64) {
			for i := range batch {
				r := weir.Request{Attributes: weir.Attributes("user", fmt.Sprint(i), "cost", fmt.Sprint(hits)), Receipt: batch[i].Decision.Receipt}
				batch[i] = weir.Item{Verb: verb, Request: r}
			}
			began := time.Now()
			if e.DoAll(t.Context(), batch); time.Since(began) > 100*time.Millisecond {
				t.Errorf("%v: a batch took %v, want the time of a flush or two", verb, time.Since(began))
			}
			for i := range batch {
				if batch[i].Err != nil || !batch[i].Decision.Degraded && verb == store.Take {
					t.Fatalf("%v: got %+v, error %v", verb, batch[i].Decision, batch[i].Err)
				}
			}
		}
		do(store.Take, 7)
		do(store.Settle, 2)
		after := disk.PowerLoss(rand.New(rand.NewPCG(1, 2)))
		e.Close()
		s.Close()

		s = mustOpen(t, after)
		defer s.Close()
		e, err = weir.NewEngine(set, weir.WithStore(&link{far: f}), weir.WithLocal(s, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		used := func() (sum int64) {
			for i := range batch {
				d, err := e.Check(t.Context(), weir.Request{Attributes: weir.Attributes("user", fmt.Sprint(i), "cost", "1")})
				if err != nil {
					t.Fatal(err)
				}
				sum += d.Usages[0].Used
			}
			return sum
		}
		if got := used(); got != 2*300 {
			t.Errorf("got %d used here after a loss of power, want 600", got)
		}
		f.away.Store(false)
		time.Sleep(2 * time.Second)
		if got := used(); got != 2*300 {
			t.Errorf("got %d used in the store after the report, want 600", got)
		}
	})
}
