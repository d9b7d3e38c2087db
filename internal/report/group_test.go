package report_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// slowSide is a side store of which the first Reporter gets the blobs, after a second.
type slowSide struct {
	*sideStore
	claims atomic.Int64
}

func (s *slowSide) Claim(prefix string, found func(string, []byte)) bool {
	if s.claims.Add(1) > 1 {
		return true
	}
	time.Sleep(time.Second)
	return s.sideStore.Claim(prefix, found)
}

// What a call asks of its group does not depend on how many other namespaces there are. It finds what another Reporter of
// the group restores, and waits for that if need be.
func TestGroupOfManyNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, side, old := outage(t)
		for key := range 3 {
			old.Add(in("mine", key), hourly, 9)
		}
		old.Close()

		f, slow, g := newFar(), &slowSide{sideStore: side}, &report.Group{}
		f.gone("circuit-open")
		var all []*report.Reporter
		for i := range 500 {
			r := report.New(f, slow, g)
			r.UseBans(strconv.Itoa(i), nil)
			all = append(all, r)
		}
		mine := report.New(f, slow, g)
		defer mine.Close()
		mine.UseBans("mine", nil)
		synctest.Wait()
		if mine.Restored() {
			t.Error("got that all is restored, too early")
		}
		mine.Sub(in("mine", 0), 4)
		if !mine.Restored() {
			t.Error("got that not all is restored, after a wait")
		}
		side.asked.Store(0)
		mine.Sub(in("mine", 0), 4)
		mine.Forget(in("mine", 1))
		if got := mine.Waiting(in("mine", 0)); got != 1 {
			t.Errorf("got %d waiting, want 1", got)
		}
		if got := mine.Waiting(in("mine", 1)); got != 0 {
			t.Errorf("got %d waiting of a key that was forgotten, want none", got)
		}
		if got := side.asked.Load(); got > 4*2 {
			t.Errorf("got %d Reporters asked by 4 calls, want at most 2 each", got)
		}
		f.back()
		time.Sleep(5 * time.Second)
		f.wants(t, in("mine", 0), 1)
		f.wants(t, in("mine", 1), 0)
		f.wants(t, in("mine", 2), 9)
		for _, r := range all {
			r.Close()
		}
		if later := report.New(f, slow, g); !later.Restored() {
			t.Error("got that a Reporter has to wait for what was restored already")
		} else {
			later.Close()
		}
	})
}

// What one Reporter has pending changes with what its group does: the first one restores the keys of all engines, and an
// engine that was replaced may still report. The bans of the rules in force are those of the namespace of the key.
func TestGroup(t *testing.T) {
	t.Parallel()
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	once := window.Limit{Quota: 1, Window: window.Sliding(time.Hour)}
	before := window.MustCompile(once)
	once.Ban = window.Ban{For: 2 * time.Hour}
	banning := window.MustCompile(once)
	synctest.Test(t, func(t *testing.T) {
		f, g := newFar(), &report.Group{}
		first, second := report.New(f, nil, g), report.New(f, nil, g)
		defer first.Close()
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
		second.Close()
		time.Sleep(time.Minute)
		f.wants(t, renewed, 0)
	})
}

// The Reporters of a group leave the places of calls in flight to others: they have as many together as one has, and report in
// turns, so that those with few keys do not wait for one with many.
func TestReportersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const namespaces, few, many = 50, 5, 20_000
		f, g := newFar(), &report.Group{}
		var asking, most atomic.Int64
		ask := func(takes time.Duration) {
			most.Store(max(most.Load(), asking.Add(1)))
			time.Sleep(takes)
			asking.Add(-1)
		}
		f.asked, f.under = func() { ask(2 * time.Millisecond) }, func() { ask(10 * time.Millisecond) }
		all := make([]*report.Reporter, namespaces)
		for i := range all {
			all[i] = report.New(f, nil, g)
		}
		count := func() {
			f.gone("circuit-open")
			for i, r := range all {
				for key := range few {
					r.Add(in(fmt.Sprint(i), key), hourly, 1)
				}
			}
			for key := range many {
				all[0].Add(in("0", key), hourly, 1)
			}
		}
		want := func(times int64) {
			t.Helper()
			for i, r := range all[1:] {
				if s := r.Stats(); s.Recorded != times*few {
					t.Errorf("namespace %d: got %+v, want %d recorded", i+1, s, times*few)
				}
			}
			if most.Load() != 1 {
				t.Errorf("got %d calls at a time, want 1", most.Load())
			}
		}

		count()
		time.Sleep(2 * time.Second)
		f.back()
		for i, r := range all {
			if r.Answered(); i == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		time.Sleep(800 * time.Millisecond)
		want(1)
		time.Sleep(10 * time.Second)
		wantStats(t, all[0], report.Stats{Recorded: few + many})

		count()
		f.back()
		var closing sync.WaitGroup
		for _, r := range all {
			closing.Go(r.Close)
		}
		closing.Wait()
		want(2)
	})
}

// Namespaces share the room for what is pending: one alone can have all keys that there may be of one, and leaves some to others.
func TestNamespacesShareRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, g := newFar(), &report.Group{}
		f.gone("circuit-open")
		sum := 0
		for i, n := range []struct{ keys, least int }{{report.MaxKeys, report.MaxKeys}, {30_000, 20_000}, {20_000, 5000}, {20_000, 1000}} {
			r := report.New(f, nil, g)
			t.Cleanup(r.Close)
			for key := range n.keys {
				r.Add(in(fmt.Sprint(i), key), hourly, 1)
			}
			s := r.Stats()
			if s.Pending < n.least || s.Pending+int(s.Dropped) != n.keys {
				t.Errorf("namespace %d: got %+v, want %d keys or more", i, s, n.least)
			}
			sum += s.Pending
		}
		if sum > report.MaxKeys*4/3 {
			t.Errorf("got %d keys of all namespaces, want at most a third more than of one", sum)
		}
	})
}
