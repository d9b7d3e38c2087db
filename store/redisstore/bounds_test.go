package redisstore_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// TestAgreesAtTheBounds plays random calls whose hits are near the bounds of
// what a window holds and of what a number in Lua holds. Each player has limits
// of one kind with random quotas, which change under their states. All results
// are those of the model. WEIR_LONG=1 makes it 20 times as many calls.
func TestAgreesAtTheBounds(t *testing.T) {
	t.Parallel()
	players := 30
	if os.Getenv("WEIR_LONG") == "1" {
		players = 600
	}
	c := connect(t, redistest.Server(t).Addr())
	for name, kind := range bounded {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for seed := range players {
				all.Go(func() {
					s := extreme(rand.New(rand.NewPCG(uint64(seed), 53)), name, kind)
					play(t, open(t, c), &s, uint64(seed), 60)
				})
			}
			all.Wait()
		})
	}
}

// bounded are the kinds of windows that count sums. A reload changes what they
// draw at random, and never their lengths, which identify a counter.
var bounded = map[string]func(*rand.Rand) window.Window{
	"sliding": func(r *rand.Rand) window.Window {
		w := window.Sliding(time.Minute)
		w.Precision = []int{0, 0, 1, 2, 3, 7, 1000, window.MaxEntries}[r.IntN(8)]
		return w
	},
	"cells":    func(r *rand.Rand) window.Window { return window.Cells(time.Minute, []int{1, 7, 60}[r.IntN(3)]) },
	"fixed":    func(*rand.Rand) window.Window { return window.Fixed(time.Minute) },
	"calendar": func(*rand.Rand) window.Window { return window.Calendar(window.Day, nil) },
	"bucket":   func(r *rand.Rand) window.Window { return window.Bucket(time.Minute, []int64{0, 1, 100}[r.IntN(3)]) },
	"fast bucket": func(r *rand.Rand) window.Window {
		return window.Bucket(time.Microsecond, []int64{0, 1, 1 << 30}[r.IntN(3)])
	},
}

// extreme returns limits with quotas near the bounds. One in four counts after a
// condition.
func extreme(r *rand.Rand, name string, kind func(*rand.Rand) window.Window) subject {
	quotas := []int64{0, 1, 2, 5, 100, 101, 1000, 1 << 32, 1 << 52, window.MaxHits - 2, window.MaxHits - 1, window.MaxHits}
	s := subject{name: fmt.Sprint(name, r.Uint64()), amounts: bounds}
	var after window.After
	if r.IntN(4) == 0 {
		base := []string{"sliding", "cells", "fixed", "calendar"}[r.IntN(4)]
		if name == "calendar" { // time goes back by days, and no other window remembers fewer
			base = name
		}
		after = window.After{Count: 1, Window: bounded[base](r)}
	}
	for len(s.limits) < 3 {
		l := window.Limit{Quota: quotas[r.IntN(len(quotas))], Window: kind(r), Measure: window.Sum, After: after}
		if after.Count > 0 {
			l.After.Count = max(1, quotas[r.IntN(len(quotas))])
		}
		compiled, err := window.Compile(l)
		if err != nil {
			continue // a bucket with products above 2^53
		}
		s.limits, s.compiled = append(s.limits, l), append(s.compiled, compiled)
	}
	return s
}

// bounds returns hits near the bounds for a limit with a capacity.
func bounds(r *rand.Rand, capacity int64) int64 {
	group := max(1, capacity/100)
	all := []int64{
		0, 1, 1, 2, 3, capacity - 1, capacity, capacity + 1, capacity / 2, group - 1, group, group + 1,
		1 << 40, 1<<52 - 1, 1 << 52, window.MaxHits - 1, window.MaxHits, window.MaxHits + 1, window.MaxHits + 2, math.MaxInt64 - 1, math.MaxInt64,
	}
	return max(0, all[r.IntN(len(all))])
}

// Many small hits and then the most there can be leave a full window.
func TestTheMostAfterFew(t *testing.T) {
	t.Parallel()
	s := open(t, connect(t, redistest.Server(t).Addr()))
	ops := []store.Op{{
		Space: store.NewSpace("", "s", "", 0), Key: []byte("k"),
		Limit: window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}),
	}}
	s.Set(window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)))
	for _, n := range []int64{1, 1, window.MaxHits} {
		ops[0].N = n
		if err := store.Do(t.Context(), s.Store, store.Record, ops); err != nil {
			t.Fatal(err)
		}
	}
	ops[0].N = 1
	if err := store.Do(t.Context(), s.Store, store.Take, ops); err != nil {
		t.Fatal(err)
	}
	if r := ops[0].Result; r.Used != 5 || r.Allowed {
		t.Errorf("got %+v, want 5 used and a denial", r)
	}
}

// A call with very many ops is answered in time: its reply is built once.
func TestManyOps(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	for name, limit := range map[string]window.Limit{
		"sliding": {Quota: 5, Window: window.Sliding(time.Hour)},
		"fixed":   {Quota: 5, Window: window.Fixed(time.Hour)},
		"mixed":   {Quota: 5, Window: window.Sliding(time.Hour), After: window.After{Count: 1, Window: window.Fixed(time.Hour)}},
	} {
		ops := make([]store.Op, 8001)
		for i := range ops {
			ops[i] = store.Op{Space: store.NewSpace("", name, "", 0), Limit: window.MustCompile(limit), Key: fmt.Append(nil, i), N: 1}
		}
		for want := range int64(3) {
			if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
				t.Fatal(err)
			}
			for i := range ops {
				if got := ops[i].Result; got.Used != want+1 || got.Before != want {
					t.Fatalf("%s, op %d: got %+v, want %d used", name, i, got, want+1)
				}
			}
		}
		ops[8000].Key = ops[0].Key
		if err := store.Do(t.Context(), s, store.Take, ops); !errors.Is(err, store.ErrRepeated) {
			t.Errorf("%s, with a key twice: got error %v, want %v", name, err, store.ErrRepeated)
		}
	}
}

// Limits that package window did not make, or made for counting in memory, are
// an error before anything is sent.
func TestLimitsOfPrograms(t *testing.T) {
	t.Parallel()
	s := redisstore.New(connect(t, redistest.Server(t).Addr()), "")
	bucket := window.MustCompile(window.Limit{Quota: 1 << 33, Window: window.Bucket(1<<20*time.Microsecond, 1<<52), Measure: window.Sum})
	for name, limit := range map[string]*window.Compiled{
		"no limit":                   nil,
		"not made by window.Compile": {},
		"products above 2^53":        bucket.Share(3),
	} {
		op := store.Op{Space: store.NewSpace("", "s", "rule", 0), Limit: limit, Key: []byte("k"), N: 1}
		calls := []store.Call{{Verb: store.Take, Ops: []store.Op{op}}, {Verb: store.Take, Ops: []store.Op{hourly(5, "other", "k")}}}
		if err := s.Do(t.Context(), calls); err != nil || calls[1].Err != nil {
			t.Fatal(err, calls[1].Err)
		}
		if err := calls[0].Err; err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `"rule"`) {
			t.Errorf("got error %v, want %q in it", err, name)
		}
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err == nil {
			t.Errorf("%s, by itself: got no error", name)
		}
	}
}
