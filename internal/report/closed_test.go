package report_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// exporting are limits that keep the last closed minute.
var exporting = map[string]window.Limit{
	"limit":   {Quota: 100, Window: window.Calendar(window.Minute, nil)},
	"counter": {Quota: window.Unlimited, Measure: window.Sum, Window: window.Calendar(window.Minute, nil)},
	"aligned": {Quota: 100, Window: window.Aligned(time.Minute)},
	"hold":    {Quota: 100, Measure: window.Sum, Window: window.Calendar(window.Minute, nil), Hold: 20 * time.Second, Release: true, MaxHolds: 1},
}

// exports runs test for each of those limits, at the beginning of a minute.
func exports(t *testing.T, test func(*testing.T, *far, *report.Reporter, *store.Op)) {
	for name, l := range exporting {
		l.Export = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reporting(t, func(t *testing.T, f *far, r *report.Reporter) { test(t, f, r, of(window.MustCompile(l), "ann", "")) })
		})
	}
}

// wantsExported fails the test if an export of the key of op says something else about the last minute and this one.
func (f *far) wantsExported(t *testing.T, op *store.Op, last, current int64) {
	t.Helper()
	f.set(window.At(time.Now().Add(f.ahead)))
	found := false
	_, err := hook.ListerOf(f.Store).Keys(t.Context(), op, nil, func(key []byte, state window.State, now window.Instant) {
		found = true
		before, heldBefore, _ := op.Limit.Exported(state, now, true)
		this, held, _ := op.Limit.Exported(state, now, false)
		if before.Hits != last || heldBefore != 0 || this.Hits != current || held != 0 {
			t.Errorf("got %d (%d held) and %d (%d held), want %d and %d", before.Hits, heldBefore, this.Hits, held, last, current)
		}
	})
	if err != nil || !found && last+current > 0 {
		t.Errorf("%s: got found %t and error %v", op.Key, found, err)
	}
}

// record counts n hits in the store.
func (f *far) record(t *testing.T, op *store.Op, n int64) {
	t.Helper()
	op.N = n
	if err := store.Do(t.Context(), f, store.Record, []store.Op{*op}); err != nil {
		t.Fatal(err)
	}
}

// Hits of an outage that spans the end of a period count in the period in which memory counted them, if the store keeps that.
func TestClosedPeriod(t *testing.T) {
	t.Parallel()
	exports(t, func(t *testing.T, f *far, r *report.Reporter, op *store.Op) {
		f.record(t, op, 100)
		f.gone("circuit-open")
		time.Sleep(48 * time.Second)
		r.Add(op, op.Limit, 70)
		time.Sleep(14 * time.Second)
		r.Add(op, op.Limit, 5)
		r.Sub(op, 2)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 73})
		f.wantsExported(t, op, 170, 3)
		f.wants(t, op, 3)
	})
}

// Without hits since, too. Only one closed period is kept.
func TestOneClosedPeriod(t *testing.T) {
	t.Parallel()
	exports(t, func(t *testing.T, f *far, r *report.Reporter, op *store.Op) {
		f.ahead = 10 * time.Second
		f.gone("circuit-open")
		r.Add(op, op.Limit, 1)
		time.Sleep(time.Minute)
		r.Add(op, op.Limit, 2)
		time.Sleep(time.Minute + 30*time.Second)
		wantStats(t, r, report.Stats{Pending: 1})
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 2})
		f.wantsExported(t, op, 2, 0)
	})
}

// A key that is forgotten has no hits of a closed period, and those that wait for longer than the store keeps them are dropped.
func TestClosedPeriodIsForgotten(t *testing.T) {
	t.Parallel()
	exports(t, func(t *testing.T, f *far, r *report.Reporter, op *store.Op) {
		f.gone("circuit-open")
		other := of(op.Limit, "bob", "")
		r.Add(op, op.Limit, 1)
		r.Add(other, op.Limit, 1)
		time.Sleep(70 * time.Second)
		r.Forget(op)
		wantStats(t, r, report.Stats{Pending: 1})
		time.Sleep(time.Minute)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{})
		f.wantsExported(t, op, 0, 0)
	})
}

// A period can end while a report of its hits is under way which the store refuses.
func TestClosesUnderWay(t *testing.T) {
	t.Parallel()
	exports(t, func(t *testing.T, f *far, r *report.Reporter, op *store.Op) {
		f.ahead = -10 * time.Second
		f.refuse.Store(true)
		f.under = sync.OnceFunc(func() {
			r.Add(op, op.Limit, 10)
			r.Sub(op, 1)
			time.Sleep(time.Minute)
			r.Add(op, op.Limit, 5)
		})
		time.Sleep(30 * time.Second)
		r.Add(op, op.Limit, 70)
		time.Sleep(time.Minute + 5*time.Second)
		f.refuse.Store(false)
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 84})
		f.wantsExported(t, op, 79, 5)
	})
}

// The hits count once if the answer to their record, or to that of its end, is lost.
func TestClosedPeriodWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	exports(t, func(t *testing.T, f *far, r *report.Reporter, op *store.Op) {
		f.after = true
		f.refuse.Store(true)
		time.Sleep(50 * time.Second)
		r.Add(op, op.Limit, 7)
		time.Sleep(15 * time.Second)
		f.gone("late")
		f.refuse.Store(false)
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Pending: 1, Lost: 7})
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Lost: 7})
		f.wantsExported(t, op, 7, 0)
	})
}

// noEnds is a store that answers no ends of holds.
type noEnds struct{ *far }

func (n noEnds) Do(ctx context.Context, calls []store.Call) error {
	if calls[0].Verb == store.Settle {
		return errors.New("ended")
	}
	return n.far.Do(ctx, calls)
}

// The hits of a closed period do not stay held for long if the process ends before it has told the store that they are final.
func TestClosedPeriodWithoutItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		l := exporting["limit"]
		l.Export = true
		op := of(window.MustCompile(l), "ann", "")
		r := report.New(noEnds{f}, nil)
		f.gone("circuit-open")
		time.Sleep(50 * time.Second)
		r.Add(op, op.Limit, 7)
		time.Sleep(20 * time.Second)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Pending: 1, Recorded: 7})
		r.Close()
		time.Sleep(10 * time.Second)
		f.wantsExported(t, op, 7, 0)
	})
}

// The next process reports the hits of a period that has closed before or after they were saved.
func TestClosedPeriodIsSaved(t *testing.T) {
	t.Parallel()
	for _, saved := range []time.Duration{40 * time.Second, 70 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f, p := newFar(), &sideStore{blobs: map[string][]byte{}}
			l := exporting["limit"]
			l.Export = true
			op := of(window.MustCompile(l), "ann", "")
			f.gone("circuit-open")
			first := report.New(f, p)
			time.Sleep(30 * time.Second)
			first.Add(op, op.Limit, 70)
			time.Sleep(saved - 30*time.Second)
			first.Close()
			time.Sleep(80*time.Second - saved)
			next := report.New(f, p)
			defer next.Close()
			time.Sleep(2 * time.Second)
			wantStats(t, next, report.Stats{Pending: 1})
			f.back()
			time.Sleep(time.Second)
			wantStats(t, next, report.Stats{Recorded: 70})
			f.wantsExported(t, op, 70, 0)
			if p.write(); p.left() > 0 {
				t.Errorf("got %d blobs, want none", p.left())
			}
		})
	}
}

// A period can end between the drop of a blob and its report.
func TestClosesWhileWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, p := newFar(), &sideStore{blobs: map[string][]byte{}}
		l := exporting["limit"]
		l.Export = true
		op := of(window.MustCompile(l), "ann", "")
		p.flushing = func() { time.Sleep(500 * time.Millisecond) }
		r := report.New(f, p)
		defer r.Close()
		f.gone("circuit-open")
		time.Sleep(50 * time.Second)
		r.Add(op, op.Limit, 7)
		p.write()
		time.Sleep(9*time.Second + 800*time.Millisecond)
		f.back()
		r.Answered()
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 7})
		f.wantsExported(t, op, 7, 0)
	})
}

// What a hold costs that ends before its report counts in the period of its take.
func TestHoldsOfAClosedPeriod(t *testing.T) {
	t.Parallel()
	for _, release := range []bool{false, true} {
		reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
			l := exporting["hold"]
			l.Export, l.Release, l.MaxHolds = true, release, 0
			op := of(window.MustCompile(l), "ann", "")
			f.gone("circuit-open")
			time.Sleep(50 * time.Second)
			settled, kept := holdOf(op, 1), holdOf(op, 2)
			r.Hold(settled, op.Limit, 10, false)
			r.Hold(kept, op.Limit, 20, false)
			time.Sleep(15 * time.Second)
			r.End(settled, 4)
			open := holdOf(op, 3)
			r.Hold(open, op.Limit, 30, false)
			time.Sleep(10 * time.Second)
			r.End(open, 9)
			f.back()
			time.Sleep(time.Second)
			want := int64(4)
			if !release {
				want += 20
			}
			wantStats(t, r, report.Stats{Recorded: want + 9})
			f.wantsExported(t, op, want, 9)
		})
	}
}

// A limit without Export keeps no closed period.
func TestNoClosedPeriod(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		op := of(window.MustCompile(exporting["limit"]), "ann", "")
		f.gone("circuit-open")
		r.Add(op, op.Limit, 1)
		time.Sleep(61 * time.Second)
		wantStats(t, r, report.Stats{})
	})
}
