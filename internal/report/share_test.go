package report_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// slowSide is a side store of which a Reporter gets the blobs after a second.
type slowSide struct{ *sideStore }

func (s slowSide) Claim(prefix string, found func(string, []byte)) bool {
	time.Sleep(time.Second)
	return s.sideStore.Claim(prefix, found)
}

// A call that changes what is pending finds what is being restored, and waits for that if need be.
func TestCallsWaitForTheRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, side, old := outage(t)
		for key := range 3 {
			old.Add(in("mine", key), hourly, 9)
		}
		old.Close()

		f := newFar()
		f.gone("circuit-open")
		r := report.New(f, slowSide{side})
		defer r.Close()
		synctest.Wait()
		if r.Restored() {
			t.Error("got that all is restored, too early")
		}
		r.Sub(in("mine", 0), 4)
		if !r.Restored() {
			t.Error("got that not all is restored, after a wait")
		}
		r.Sub(in("mine", 0), 4)
		r.Forget(in("mine", 1))
		if got := r.Waiting(in("mine", 0)); got != 1 {
			t.Errorf("got %d waiting, want 1", got)
		}
		if got := r.Waiting(in("mine", 1)); got != 0 {
			t.Errorf("got %d waiting of a key that was forgotten, want none", got)
		}
		f.back()
		time.Sleep(5 * time.Second)
		f.wants(t, in("mine", 0), 1)
		f.wants(t, in("mine", 1), 0)
		f.wants(t, in("mine", 2), 9)
	})
}

// open returns the Reporter that an engine of a namespace shares, and what closes the engine.
func open(t *testing.T, s *report.Shared, f *far, namespace string) (*report.Reporter, func()) {
	t.Helper()
	r, end, ok := s.Open(f, nil, namespace)
	if !ok {
		t.Fatal("got no Reporter")
	}
	return r, end
}

// A Reporter is open as long as one of the engines that share it is, and reports for those that are closed. Another store has
// to wait for its end.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, other := newFar(), newFar()
		var s report.Shared
		first, endFirst := open(t, &s, f, "a")
		second, endSecond := open(t, &s, f, "b")
		if first != second {
			t.Error("got two Reporters, want one")
		}
		if _, _, ok := s.Open(other, nil, "a"); ok {
			t.Error("got a Reporter to another store, want none")
		}
		f.gone("circuit-open")
		first.Add(in("a", 0), hourly, 3)
		endFirst()
		endFirst()
		first.Add(in("a", 1), hourly, 4) // by a call that had begun before
		second.Add(in("b", 0), hourly, 5)
		time.Sleep(time.Minute)
		wantStats(t, first, report.Stats{Pending: 3})
		f.back()
		endSecond()
		wantStats(t, second, report.Stats{Recorded: 12})

		third, endThird := open(t, &s, other, "a")
		if other.gone("circuit-open"); third == first {
			t.Error("got a Reporter that is closed")
		}
		third.Add(in("a", 0), hourly, 3)
		endThird()
		wantStats(t, third, report.Stats{Dropped: 3})
	})
}

// Any engine changes what others have counted. That waits under the rules in force of the namespace even if no engine of it is
// open any more, and then nothing of the namespace stays.
func TestSharedByNamespace(t *testing.T) {
	t.Parallel()
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	once := window.Limit{Quota: 1, Window: window.Sliding(time.Hour)}
	before := window.MustCompile(once)
	once.Ban = window.Ban{For: 2 * time.Hour}
	banning := window.MustCompile(once)
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		var s report.Shared
		first, endFirst := open(t, &s, f, "")
		second, endSecond := open(t, &s, f, "")
		last, endLast := open(t, &s, f, "other")
		defer endLast()
		sam := of(banning, "sam", "")
		for range 2 {
			sam.N = 1
			if err := store.Do(t.Context(), f, store.Take, []store.Op{*sam}); err != nil {
				t.Fatal(err)
			}
		}
		f.gone("circuit-open")
		settled, renewed := of(holding, "settled", ""), of(holding, "renewed", "")
		for i, op := range []*store.Op{settled, renewed} {
			op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{byte(i + 1)}}}
			op.Hold.Decided = window.At(time.Now())
			first.Hold(op, holding, 9, false)
		}
		ann, bob := of(hourly, "ann", ""), of(hourly, "bob", "")
		first.Add(ann, hourly, 5)
		first.Add(bob, hourly, 3)
		first.Add(sam, before, 1)
		second.Add(ann, hourly, 2)

		time.Sleep(30 * time.Second)
		second.End(settled, 4)
		renewed.Hold.Decided = window.At(time.Now())
		second.Renew(renewed)
		second.Sub(ann, 4)
		second.Forget(bob)
		second.UseBans("", map[string]window.Ban{posts.ID(): banning.Ban})
		endFirst()
		endSecond()
		f.back()
		time.Sleep(2 * time.Second)
		f.wants(t, settled, 4)
		f.wants(t, ann, 3)
		f.wants(t, bob, 0)
		if r, err := f.Store.Read(t.Context(), sam); err != nil || !r.Banned {
			t.Errorf("got %+v, %v, want a ban", r, err)
		}
		time.Sleep(45 * time.Second)
		f.wants(t, renewed, 9)
		time.Sleep(time.Minute)
		f.wants(t, renewed, 0)
		if got := report.Namespaces(last); got != 1 {
			t.Errorf("got %d namespaces at the end, want 1", got)
		}
	})
}

// Namespaces report together, one call at a time, so that others have the places of calls in flight. Those with few keys do not
// wait for one with many.
func TestManyNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const namespaces, few, many = 50, 5, 20_000
		f := newFar()
		var asking, most atomic.Int64
		ask := func(takes time.Duration) {
			most.Store(max(most.Load(), asking.Add(1)))
			time.Sleep(takes)
			asking.Add(-1)
		}
		f.asked, f.under = func() { ask(2 * time.Millisecond) }, func() { ask(10 * time.Millisecond) }
		r := report.New(f, nil)
		count := func() {
			f.gone("circuit-open")
			for i := range namespaces {
				for key := range few {
					r.Add(in(fmt.Sprint(i), key), hourly, 1)
				}
			}
			for key := range many {
				r.Add(in("0", few+key), hourly, 1)
			}
		}
		want := func(times int64) {
			t.Helper()
			if most.Load() != 1 {
				t.Errorf("got %d calls at a time, want 1", most.Load())
			}
			for i := range namespaces - 1 {
				for key := range few {
					f.wants(t, in(fmt.Sprint(i+1), key), times)
				}
			}
		}

		count()
		time.Sleep(2 * time.Second)
		f.back()
		r.Answered()
		time.Sleep(100 * time.Millisecond)
		want(1)
		time.Sleep(10 * time.Second)
		wantStats(t, r, report.Stats{Recorded: namespaces*few + many})

		count()
		f.back()
		r.Close()
		want(2)
	})
}

// Namespaces share the room for what is pending: one alone can have all keys that there may be of one, and leaves some to others.
func TestNamespacesShareRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		f.gone("circuit-open")
		r := report.New(f, nil)
		defer r.Close()
		var before report.Stats
		for i, n := range []struct{ keys, least int }{{report.MaxKeys, report.MaxKeys}, {30_000, 20_000}, {20_000, 5000}, {20_000, 1000}} {
			for key := range n.keys {
				r.Add(in(fmt.Sprint(i), key), hourly, 1)
			}
			s := r.Stats()
			pending, dropped := s.Pending-before.Pending, s.Dropped-before.Dropped
			if pending < n.least || pending+int(dropped) != n.keys {
				t.Errorf("namespace %d: got %d pending and %d dropped, want %d keys or more", i, pending, dropped, n.least)
			}
			before = s
		}
		if before.Pending > report.MaxKeys*4/3 {
			t.Errorf("got %d keys of all namespaces, want at most a third more than of one", before.Pending)
		}
	})
}
