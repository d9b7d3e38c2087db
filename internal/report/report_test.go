package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// far is a store that can be unavailable.
type far struct {
	store.Store
	set   func(window.Instant)
	ahead time.Duration                // of its clock
	away  atomic.Pointer[store.Reason] // nil: it answers
	after bool                         // the outage comes after the count
	under func()                       // not nil: called by Do

	secrets atomic.Pointer[[][16]byte] // of receipts

	refuse atomic.Bool  // it answers reads alone
	calls  atomic.Int64 // records that it was asked for
	asked  func()       // not nil: called by Read
}

// uncounted are the reasons after which far has certainly not counted.
var uncounted = []store.Reason{"circuit-open", "busy", "refused", "loading", "read-only", "full"}

func newFar() *far {
	m := storetest.NewModel()
	return &far{Store: m.Store, set: m.Set}
}

func (f *far) Secrets(bool, ...[16]byte) (all [][16]byte) {
	if known := f.secrets.Load(); known != nil {
		all = *known
	}
	return all
}

func (f *far) RotateSecret(context.Context, time.Duration) error { return nil }

func (f *far) gone(reason store.Reason) { f.away.Store(&reason) }

func (f *far) back() { f.away.Store(nil) }

func (f *far) Do(ctx context.Context, calls []store.Call) error {
	f.set(window.At(time.Now().Add(f.ahead)))
	if calls[0].Verb == store.Record {
		f.calls.Add(int64(len(calls)))
		if f.under != nil {
			f.under()
		}
	}
	for i := range calls {
		if f.refuse.Load() {
			calls[i].Err = &store.OutageError{Reason: "read-only", Err: errors.New("a replica"), Uncounted: true}
			continue
		}
		if why := f.away.Load(); why != nil {
			if f.after {
				_ = store.Do(ctx, f.Store, calls[i].Verb, calls[i].Ops)
			}
			calls[i].Err = &store.OutageError{Reason: *why, Err: errors.New("away"), Uncounted: slices.Contains(uncounted, *why)}
			continue
		}
		if err := f.Store.Do(ctx, calls[i:i+1]); err != nil {
			calls[i].Err = err
		}
	}
	return nil
}

func (f *far) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	f.set(window.At(time.Now().Add(f.ahead)))
	if f.asked != nil {
		f.asked()
	}
	if why := f.away.Load(); why != nil && !f.after {
		return window.Reading{}, &store.OutageError{Reason: *why, Err: errors.New("away")}
	}
	return f.Store.Read(ctx, op)
}

func (f *far) used(t *testing.T, op *store.Op) int64 {
	t.Helper()
	f.set(window.At(time.Now().Add(f.ahead)))
	r, err := f.Store.Read(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

// wants fails the test if not exactly want hits of the key of op are used.
func (f *far) wants(t *testing.T, op *store.Op, want int64) {
	t.Helper()
	if got := f.used(t, op); got != want {
		t.Errorf("%s: got %d used, want %d", op.Key, got, want)
	}
}

// reporting runs test with a reporter to a store, in virtual time.
func reporting(t *testing.T, test func(*testing.T, *far, *report.Reporter)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		r := report.New(f, nil)
		defer r.Close()
		test(t, f, r)
	})
}

var (
	posts  = store.NewSpace("", "posts", "posts", 0)
	hourly = window.MustCompile(window.Limit{Quota: 50, Window: window.Sliding(time.Hour)})
)

// of returns an op for a key.
func of(limit *window.Compiled, key, member string) *store.Op {
	return &store.Op{Space: posts, Limit: limit, Key: []byte(key), Member: []byte(member)}
}

// in returns an op for a key of a namespace.
func in(namespace string, key int) *store.Op {
	op := of(hourly, fmt.Sprint(key), "")
	op.Space = store.NewSpace(namespace, "posts", "posts", 0)
	return op
}

// holdOf returns op with its nth hold, which begins now.
func holdOf(op *store.Op, n int) *store.Op {
	held := *op
	held.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{byte(n), byte(n >> 8), 1}}}
	held.Hold.Decided = window.At(time.Now())
	return &held
}

func wantStats(t *testing.T, r *report.Reporter, want report.Stats) {
	t.Helper()
	if got := r.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What was counted meanwhile is recorded when the store answers, merged per
// key. Without calls the reporter finds out by itself, within a second.
func TestReports(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		for range 3 {
			r.Add(of(hourly, "ann", ""), hourly, 2)
			r.Add(of(hourly, "bob", ""), hourly, 1)
		}
		r.Sub(of(hourly, "bob", ""), 2)
		r.Sub(of(hourly, "eve", ""), 2)
		time.Sleep(time.Minute)
		wantStats(t, r, report.Stats{Pending: 2})
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 7})
		if ann, bob := f.used(t, of(hourly, "ann", "")), f.used(t, of(hourly, "bob", "")); ann != 6 || bob != 1 || f.calls.Load() != 2 {
			t.Errorf("got %d and %d in %d calls, want 6 and 1 in 2", ann, bob, f.calls.Load())
		}
		time.Sleep(time.Hour)
		if f.calls.Load() != 2 {
			t.Errorf("later: got %d calls, want no more", f.calls.Load())
		}
	})
}

// Hits that are given back while the store is asked whether it answers are not reported,
// and neither is a key that is forgotten then.
func TestSubWhileAsked(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		ann, bob := of(hourly, "ann", ""), of(hourly, "bob", "")
		f.asked = sync.OnceFunc(func() {
			r.Sub(ann, 2)
			r.Forget(bob)
		})
		r.Add(ann, hourly, 5)
		r.Add(bob, hourly, 1)
		time.Sleep(10 * time.Second)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 3})
		f.wants(t, ann, 3)
	})
}

// What changes while a report is under way that the store refuses is not reported
// afterwards: hits that are given back, the newest first, a key that is forgotten, and
// holds that are settled, cancelled or renewed.
func TestChangesUnderWay(t *testing.T) {
	t.Parallel()
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute})
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		ann, bob, eve := of(hourly, "ann", ""), of(hourly, "bob", ""), of(hourly, "eve", "")
		team, other := of(holding, "team", ""), of(holding, "other", "")
		settled, cancelled, renewed := holdOf(team, 1), holdOf(team, 2), holdOf(other, 3)
		f.refuse.Store(true)
		f.under = sync.OnceFunc(func() {
			r.Add(ann, hourly, 3)
			r.Sub(ann, 7)
			r.Sub(bob, 9)
			r.Forget(eve)
			r.End(settled, 4)
			r.End(settled, 40) // it has ended
			r.End(cancelled, 0)
			time.Sleep(30 * time.Second)
			renewed.Hold.Decided = window.At(time.Now())
			r.Renew(renewed)
		})
		r.Add(ann, hourly, 5)
		r.Add(bob, hourly, 1)
		r.Add(eve, hourly, 1)
		r.Hold(settled, holding, 9, false)
		r.Hold(cancelled, holding, 10, false)
		r.Hold(renewed, holding, 6, false)
		time.Sleep(30*time.Second + 500*time.Millisecond)
		wantStats(t, r, report.Stats{Pending: 3})
		f.refuse.Store(false)
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 1 + 4 + 6})
		f.wants(t, ann, 1)
		f.wants(t, bob, 0)
		f.wants(t, eve, 0)
		f.wants(t, team, 4)
		f.wants(t, other, 6)
	})
}

// What changes while a report is under way that the store takes does not come back.
func TestChangesOfATakenReport(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		ann := of(hourly, "ann", "")
		f.under = sync.OnceFunc(func() {
			r.Sub(ann, 2)
			r.Add(ann, hourly, 3)
			r.Sub(ann, 1)
		})
		r.Add(ann, hourly, 5)
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 5 + 2})
		f.wants(t, ann, 7)
	})
}

// Holds that are settled, cancelled or renewed while a report is under way that the store takes end in the store, too. The
// caller's own call has reached it before the record, and found nothing.
func TestHoldsThatEndUnderWay(t *testing.T) {
	t.Parallel()
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		var ops []*store.Op
		for i := range 4 {
			ops = append(ops, holdOf(of(holding, "team", ""), i))
		}
		f.gone("circuit-open")
		f.under = func() {
			if f.away.Load() != nil {
				return
			}
			f.under = nil
			r.End(ops[0], 4)
			r.End(ops[1], 0)
			ops[2].Hold.Decided = window.At(time.Now())
			r.Renew(ops[2])
		}
		for i, op := range ops {
			r.Hold(op, holding, int64(10+i), false)
		}
		time.Sleep(30 * time.Second)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 10 + 11 + 12 + 13})
		f.wants(t, ops[0], 4+12+13)
		time.Sleep(40 * time.Second) // the last one has ended
		f.wants(t, ops[0], 4+12)
		time.Sleep(time.Minute)
		f.wants(t, ops[0], 4)
	})
}

// Holds of a rule that holds no more stay holds: what one costs that ends before the report counts, and the others end
// with their receipts afterwards.
func TestHoldsOfARuleThatHoldsNoMore(t *testing.T) {
	t.Parallel()
	holding := window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute}
	before := window.MustCompile(holding)
	holding.Hold = 0
	after := window.MustCompile(holding)
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		var ops []*store.Op
		f.gone("circuit-open")
		for i := range 3 {
			ops = append(ops, holdOf(of(before, "team", ""), i))
			r.Hold(ops[i], before, 10, false)
		}
		r.Add(of(after, "team", ""), after, 7)
		r.End(ops[0], 1000)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 7 + 1000 + 10 + 10})
		ops[1].Limit, ops[1].N = after, 500
		if err := store.Do(t.Context(), f, store.Settle, []store.Op{*ops[1]}); err != nil {
			t.Fatal(err)
		}
		f.wants(t, ops[0], 7+1000+500+10)
	})
}

// What a hold of an outage costs counts in the window that its report begins, whether it is
// settled afterwards or ends by itself.
func TestHoldsBeginWindows(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Fixed(time.Hour), Hold: time.Minute})
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		var ops []store.Op
		for i := range 2 {
			op := holdOf(of(limit, "team", ""), i)
			op.N = 7
			r.Hold(op, limit, 9, false)
			ops = append(ops, *op)
			time.Sleep(10 * time.Second)
		}
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 18})
		if err := store.Do(t.Context(), f, store.Settle, ops[:1]); err != nil || !ops[0].Result.Held || ops[0].Result.Used != 16 {
			t.Errorf("settled: got %+v, %v, want 7 and 9 used", ops[0].Result, err)
		}
		time.Sleep(10 * time.Minute)
		if got := f.used(t, &ops[0]); got != 16 {
			t.Errorf("after the other one has ended: got %d used, want 16", got)
		}
	})
}

// The holds of an outage last as long as they would have lasted, whatever the store's clock says.
func TestHoldsUnderAnotherClock(t *testing.T) {
	t.Parallel()
	place := window.MustCompile(window.Limit{Quota: 3, Window: window.Held(time.Minute)})
	for _, ahead := range []time.Duration{-2 * time.Hour, -30 * time.Second, 2 * time.Hour} {
		reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
			f.ahead = ahead
			f.gone("circuit-open")
			op := holdOf(of(place, "door", ""), 1)
			r.Hold(op, place, 1, false)
			time.Sleep(20 * time.Second)
			f.back()
			time.Sleep(39 * time.Second)
			f.wants(t, op, 1)
			time.Sleep(2 * time.Second)
			f.wants(t, op, 0)
		})
	}
}

// Keys with many holds are sent in parts, after the keys with few, so that they do not make the reports of others
// late. Between two parts their holds end as at any time.
func TestManyHolds(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 10_000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true, MaxHolds: 500})
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		const honest, heavy, each = 100, 20, 500
		f.gone("circuit-open")
		var all [][]*store.Op
		for key := range heavy {
			var ops []*store.Op
			for i := range each {
				ops = append(ops, holdOf(of(limit, fmt.Sprint("heavy", key), ""), i))
				r.Hold(ops[i], limit, 1, false)
			}
			all = append(all, ops)
		}
		for i := range honest {
			r.Add(of(hourly, fmt.Sprint(i), ""), hourly, 1)
		}
		before, batches := int64(0), 0
		f.under = func() {
			sent := f.calls.Load() - before
			before += sent
			if f.away.Load() != nil {
				return
			}
			if batches++; sent > 128 {
				t.Errorf("got %d records in batch %d, want at most 128", sent, batches)
			}
			if batches != 2 {
				return
			}
			for i := range honest {
				f.wants(t, of(hourly, fmt.Sprint(i), ""), 1)
			}
			for _, op := range all[0] {
				if !r.End(op, 0) {
					_ = store.Do(t.Context(), f.Store, store.Settle, []store.Op{*op})
				}
			}
		}
		f.back()
		time.Sleep(2 * time.Second)
		if s := r.Stats(); s.Pending != 0 || s.Lost+s.Dropped != 0 || s.Recorded > heavy*each+honest {
			t.Errorf("got %+v, want all recorded", s)
		}
		f.wants(t, all[0][0], 0)
		for _, ops := range all[1:] {
			f.wants(t, ops[0], each)
		}
	})
}

// Namespaces take turns, so that what one has left does not make the reports of another late.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		for key := range 10_000 {
			r.Add(in("big", key), hourly, 1)
		}
		for key := range 50 {
			r.Add(in("small", key), hourly, 1)
		}
		batches := 0
		f.under = func() {
			if batches++; batches == 2 {
				for key := range 50 {
					f.wants(t, in("small", key), 1)
				}
			}
		}
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 10_050})
	})
}

// Long keys are sent a few at a time, so that they do not make the reports of others late.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		const keys, long = 100, 30_000
		f.gone("circuit-open")
		for i := range keys {
			r.Add(of(hourly, fmt.Sprintf("%*d", long, i), ""), hourly, 1)
		}
		most, before := int64(0), int64(0)
		f.under = func() {
			if f.away.Load() == nil {
				most = max(most, f.calls.Load()-before)
			}
			before = f.calls.Load()
		}
		f.back()
		time.Sleep(time.Second)
		r.Close()
		wantStats(t, r, report.Stats{Recorded: keys})
		if most*long > 64<<10 {
			t.Errorf("got %d keys of %d bytes in one call of the store, want at most 64 KiB", most, long)
		}
	})
}

// The first call that the store answers starts the report.
func TestReportsAfterAnAnswer(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("late")
		r.Answered()
		r.Add(of(hourly, "ann", ""), hourly, 1)
		time.Sleep(10 * time.Second)
		f.back()
		r.Answered()
		synctest.Wait()
		time.Sleep(20 * time.Millisecond)
		wantStats(t, r, report.Stats{Recorded: 1})
	})
}

// A store that answers reads and refuses what is recorded, as one that is full does, is asked for a few keys each second. All
// are recorded when it takes one of them.
func TestStoreThatRefuses(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		const keys = 5000
		f.refuse.Store(true)
		for i := range keys {
			r.Add(of(hourly, fmt.Sprint(i), ""), hourly, 1)
		}
		time.Sleep(5 * time.Second)
		tried := f.calls.Load()
		for range 6000 {
			r.Answered() // for a read
			time.Sleep(10 * time.Millisecond)
		}
		if got := f.calls.Load() - tried; tried > keys+10*128 || got < 30 || got > 61*16 {
			t.Errorf("got %d records of %d keys in 5 s and %d in the next minute, want each key once, and then at most 16 a second", tried, keys, got)
		}
		wantStats(t, r, report.Stats{Pending: keys})
		f.refuse.Store(false)
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: keys})
	})
}

// halved is a store with two nodes. That of the keys that begin with "gone" is away, or only answers reads.
type halved struct {
	*far
	reads bool
}

func (h halved) away(key []byte) error {
	if !bytes.HasPrefix(key, []byte("gone")) {
		return nil
	}
	return &store.OutageError{Reason: "refused", Err: errors.New("a node is away"), Uncounted: true}
}

func (h halved) Do(ctx context.Context, calls []store.Call) error {
	for i := range calls {
		if calls[i].Err = h.away(calls[i].Ops[0].Key); calls[i].Err == nil {
			_ = h.far.Do(ctx, calls[i:i+1])
		}
	}
	return nil
}

func (h halved) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	switch err := h.away(op.Key); {
	case err == nil:
		return h.far.Read(ctx, op)
	case h.reads:
		return window.Reading{}, nil
	default:
		return window.Reading{}, err
	}
}

// What one node of a cluster missed is recorded soon after it answers, also while many keys wait for another node that is away.
func TestReportsBesideANodeThatIsAway(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { besideANodeThatIsAway(t, reads) })
	}
}

func besideANodeThatIsAway(t *testing.T, reads bool) {
	f := newFar()
	r := report.New(halved{f, reads}, nil)
	defer r.Close()
	for i := range 2000 {
		r.Add(of(hourly, fmt.Sprint("gone", i), ""), hourly, 1)
	}
	for outage := range 10 {
		f.gone("circuit-open")
		for i := range 32 {
			r.Add(of(hourly, fmt.Sprint("here", i), ""), hourly, 1)
		}
		time.Sleep(time.Minute)
		f.back()
		time.Sleep(10 * time.Second)
		wantStats(t, r, report.Stats{Pending: 2000, Recorded: int64(32 * (outage + 1))})
	}
}

// A node that hangs is asked for one key at a time, at most twice a second, while other nodes answer calls.
func TestNodeThatHangs(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("late")
		var asked atomic.Int64
		f.asked = func() { asked.Add(1) }
		for i := range 1000 {
			r.Add(of(hourly, fmt.Sprint(i), ""), hourly, 1)
		}
		time.Sleep(10 * time.Second)
		asked.Store(0)
		for range 1000 {
			r.Answered()
			time.Sleep(10 * time.Millisecond)
		}
		if got := asked.Load(); got > 20 {
			t.Errorf("got %d reads in 10 s, want at most 20", got)
		}
		wantStats(t, r, report.Stats{Pending: 1000})
	})
}

// Hits that leave the window before the store answers are not reported, nor are
// those of a key that was forgotten.
func TestHitsThatLeftTheWindow(t *testing.T) {
	t.Parallel()
	minute := window.MustCompile(window.Limit{Quota: 50, Window: window.Sliding(time.Minute)})
	members := window.MustCompile(window.Limit{Quota: 50, Measure: window.Distinct, Window: window.Sliding(time.Minute)})
	after := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Hour), After: window.After{Count: 3, Window: window.Fixed(time.Hour)}})
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		r.Add(of(minute, "ann", ""), minute, 5)
		r.Add(of(members, "tags", "a"), members, 1)
		r.Add(of(members, "gone", "a"), members, 1)
		r.Add(of(members, "gone", "b"), members, 1)
		time.Sleep(40 * time.Second)
		r.Add(of(minute, "ann", ""), minute, 3)
		r.Add(of(members, "tags", "b"), members, 1)
		r.Add(of(members, "tags", "c"), members, 1)
		r.Add(of(after, "after", ""), after, 4)
		r.Forget(of(members, "gone", ""))
		wantStats(t, r, report.Stats{Pending: 5})
		time.Sleep(30 * time.Second)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 9})
		f.wants(t, of(minute, "ann", ""), 3)
		f.wants(t, of(members, "tags", ""), 2)
		f.wants(t, of(members, "gone", ""), 0)
		f.wants(t, of(after, "after", ""), 2)
	})
}

// Under a limit after a count, hits are reported as long as one of its two windows has
// them. Hits that left both, as of a key that never came to the condition, are not.
func TestHitsThatLeftTheCondition(t *testing.T) {
	t.Parallel()
	minute, hour := window.Sliding(time.Minute), window.Sliding(time.Hour)
	after := window.MustCompile(window.Limit{Quota: 10, Window: hour, After: window.After{Count: 5, Window: minute}})
	banned := *after.Limit
	banned.Ban = window.Ban{For: time.Minute}
	for _, limit := range []*window.Compiled{after, window.MustCompile(banned)} {
		reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
			f.gone("circuit-open")
			r.Add(of(limit, "eve", ""), limit, 9) // five of these are the limit's
			for range 50 {
				r.Add(of(limit, "ann", ""), limit, 4)
				time.Sleep(time.Minute)
			}
			r.Add(of(limit, "ann", ""), limit, 3)
			f.back()
			time.Sleep(time.Second)
			wantStats(t, r, report.Stats{Recorded: 3 + 9})
			for key, want := range map[string]int64{"ann": 0, "eve": 5} {
				f.wants(t, of(limit, key, ""), want)
			}
		})
	}
}

// A report without an answer may have counted: it is not sent again.
func TestLostReports(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.after = true
		f.gone("closed")
		r.Add(of(hourly, "ann", ""), hourly, 4)
		time.Sleep(time.Minute)
		wantStats(t, r, report.Stats{Lost: 4})
		f.back()
		r.Add(of(hourly, "ann", ""), hourly, 1)
		time.Sleep(time.Minute)
		wantStats(t, r, report.Stats{Recorded: 1, Lost: 4})
		f.wants(t, of(hourly, "ann", ""), 5)
	})
}

// slow is a store that takes some time for a decision, which has a time-out.
type slow struct {
	store.Store
	takes, timeout time.Duration
}

func (s *slow) Do(ctx context.Context, calls []store.Call) error {
	ctx, cancel := remote.Within(ctx, s.timeout)
	defer cancel()
	time.Sleep(s.takes)
	if ctx.Err() != nil {
		for i := range calls {
			calls[i].Err = &store.OutageError{Reason: remote.Late, Err: ctx.Err()}
		}
		return nil
	}
	return s.Store.Do(ctx, calls)
}

// Nobody waits for a report, so it may take longer than a decision.
func TestReportsMayTakeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		r := report.New(&slow{f, 300 * time.Millisecond, 50 * time.Millisecond}, nil)
		defer r.Close()
		r.Add(of(hourly, "ann", ""), hourly, 4)
		time.Sleep(time.Minute)
		wantStats(t, r, report.Stats{Recorded: 4})
	})
}

// Keys without room are counted and dropped.
func TestMaxKeys(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		f.gone("circuit-open")
		for i := range report.MaxKeys + 5 {
			r.Add(of(hourly, fmt.Sprint(i), ""), hourly, 2)
		}
		r.Add(of(hourly, "0", ""), hourly, 2)
		wantStats(t, r, report.Stats{Pending: report.MaxKeys, Dropped: 10})
	})
}

// The memory of keys is bounded, too, because callers choose how long they are. It is free again after the report.
func TestKeysOfAnyLength(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
		const size, most = 64 << 10, 32_000_000 // bytes
		for range 2 {
			before := r.Stats()
			f.gone("circuit-open")
			for i := range 2 * most / size {
				key := fmt.Sprintf("%0*d", size, i)
				r.Add(of(hourly, key, key), hourly, 1)
				if i < 3 {
					r.Forget(of(hourly, key, key))
				}
			}
			got := r.Stats()
			if got.Pending < most/size*9/10 || got.Pending > most/size+1 || int64(got.Pending+3)+got.Dropped-before.Dropped != 2*most/size {
				t.Fatalf("got %+v of %d keys of %d bytes, want those that %d bytes hold", got, 2*most/size, size, most)
			}
			f.back()
			time.Sleep(time.Minute)
			wantStats(t, r, report.Stats{Recorded: before.Recorded + int64(got.Pending), Dropped: got.Dropped})
		}
	})
}

// stuck is a store without time-out that answers only at the end of a context.
type stuck struct{ store.Store }

func (stuck) Read(ctx context.Context, _ *store.Op) (window.Reading, error) {
	<-ctx.Done()
	return window.Reading{}, ctx.Err()
}

// Close reports what is pending, and waits a second at most for a store.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		r := report.New(f, nil)
		r.Close()
		r = report.New(f, nil)
		r.Add(of(hourly, "ann", ""), hourly, 4)
		r.Close()
		r.Close()
		r.Add(of(hourly, "ann", ""), hourly, 1)
		r.Sub(of(hourly, "ann", ""), 1)
		wantStats(t, r, report.Stats{Recorded: 4, Dropped: 1})

		began := time.Now()
		r = report.New(stuck{f}, nil)
		r.Add(of(hourly, "ann", ""), hourly, 3)
		r.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("stuck: Close took %v, want 1s", took)
		}
		wantStats(t, r, report.Stats{Dropped: 3})
		var none *report.Reporter
		none.Add(of(hourly, "ann", ""), hourly, 1)
		none.Answered()
		none.Close()
		wantStats(t, none, report.Stats{})
	})
}

// Whatever outages a store has, each hit is recorded once, or counted as lost
// or dropped, or pending.
func TestEachHitOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		reporting(t, func(t *testing.T, f *far, r *report.Reporter) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			many := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(1000 * time.Hour)})
			reasons := append([]store.Reason{"late", "foreign", "closed", "unknown"}, uncounted...)
			added := map[string]int64{}
			for range 60 {
				switch rnd.IntN(4) {
				case 0:
					f.gone(reasons[rnd.IntN(len(reasons))])
				case 1:
					f.back()
					r.Answered()
				default:
					for range rnd.IntN(200) {
						key := fmt.Sprint(rnd.IntN(300))
						r.Add(of(many, key, ""), many, 1)
						added[key]++
					}
				}
				time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
			}
			f.back()
			time.Sleep(10 * time.Second)
			r.Close()
			s := r.Stats()
			var all, sum int64
			for key, n := range added {
				used := f.used(t, of(many, key, ""))
				if all, sum = all+n, sum+used; used > n {
					t.Errorf("seed %d, key %s: got %d recorded of %d", seed, key, used, n)
				}
			}
			if s.Recorded != sum || s.Recorded+s.Lost != all || s.Pending+int(s.Dropped) != 0 {
				t.Errorf("seed %d: got %+v and %d used of %d", seed, s, sum, all)
			}
		})
	}
}
