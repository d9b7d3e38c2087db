package datadir_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// engineRules are rules that an engine asks memory about directly: one key, several
// keys, members.
var engineRules = []rule.Rule{
	{Name: "alone", When: []rule.Condition{{Attribute: "a", Test: rule.Equal("0")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 4}, Window: window.Sliding(time.Minute)},
	{Name: "first", When: []rule.Condition{{Attribute: "a", Test: rule.Equal("1")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Fixed(time.Minute)},
	{Name: "second", When: []rule.Condition{{Attribute: "a", Test: rule.Equal("1")}}, Quota: &rule.Quota{Value: 20}, Window: window.Bucket(time.Minute, 5)},
	{Name: "paths", When: []rule.Condition{{Attribute: "a", Test: rule.Equal("1")}}, Per: []string{"user"}, Measure: window.Distinct, Of: "path", Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Minute)},
}

// An engine decides with a directory as it does in memory, also after restarts, and
// whatever way it takes to the memory: with Always it has to wait for the disk.
func TestEngineWithDirectory(t *testing.T) {
	t.Parallel()
	for _, sync := range datadir.Syncs() {
		t.Run(string(sync), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { engineLikeMemory(t, sync) })
		})
	}
}

func engineLikeMemory(t *testing.T, sync datadir.Sync) {
	set, err := rule.New(engineRules, nil)
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Int64
	now.Store(int64(window.At(time.Now())))
	clock := func() window.Instant { return window.Instant(now.Load()) }
	inMemory := memstore.New(memstore.WithClock(clock))
	defer inMemory.Close()
	want, err := weir.NewEngine(set, weir.WithStore(inMemory))
	if err != nil {
		t.Fatal(err)
	}
	disk := datadir.NewDisk()
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		s := mustOpen(t, disk, datadir.WithClock(clock), datadir.WithSync(sync))
		if direct := s.Hooks(s).Memory != nil; direct != (sync != datadir.Always) {
			t.Fatalf("got a direct way %v", direct)
		}
		if around := (struct{ *datadir.Store }{s}); around.Hooks(around).Memory != nil {
			t.Fatal("got a direct way of a store that is embedded, want none")
		}
		got, err := weir.NewEngine(set, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			verb := []store.Verb{store.Take, store.Take, store.Check, store.Record}[r.IntN(4)]
			req := weir.Request{Attributes: weir.Attributes("user", fmt.Sprint(r.IntN(3)), "a", fmt.Sprint(r.IntN(2)), "path", fmt.Sprint(r.IntN(5)))}
			var g, w weir.Decision
			if err := got.Do(t.Context(), verb, &req, &g); err != nil {
				t.Fatal(err)
			}
			if err := want.Do(t.Context(), verb, &req, &w); err != nil {
				t.Fatal(err)
			}
			if g, w := fmt.Sprintf("%+v", g.Usages), fmt.Sprintf("%+v", w.Usages); g != w {
				t.Fatalf("%v %+v:\ngot  %s\nwant %s", verb, req, g, w)
			}
			now.Add(r.Int64N(5e6))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// While the counters are loaded, an engine meets an outage on its direct way, too.
func TestEngineWhileLoading(t *testing.T) {
	t.Parallel()
	set, err := rule.New(engineRules, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := &datadir.SlowDisk{Disk: fill(t, 3, 2), Reading: make(chan struct{}), Release: make(chan struct{})}
	s, err := datadir.Open("", datadir.WithAnyDisk(slow), datadir.InBackground())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := weir.NewEngine(set, weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	take := func(a string) weir.Decision {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann", "a", a, "path", "/")})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	<-slow.Reading
	for _, a := range []string{"0", "1"} {
		if d := take(a); d.Allowed || !d.Degraded {
			t.Errorf("a=%s while loading: got %+v, want denied and degraded", a, d)
		}
	}
	close(slow.Release)
	<-s.Loaded()
	for _, a := range []string{"0", "1"} {
		if d := take(a); !d.Allowed || d.Degraded || d.Usages[0].Used != 1 {
			t.Errorf("a=%s: got %+v, want the first hit", a, d)
		}
	}
}
