package weir_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// After an outage the store holds what local memory admitted: the window that
// is still open goes on with all hits.
func TestOutageIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, []rule.Rule{{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 20}, Window: window.Sliding(time.Hour)}})
		defer e.Close()
		takes(t, e, "user", "ann")
		s.set(true, "r")
		for range 7 {
			takes(t, e, "user", "ann")
		}
		if got, want := e.Reports(), (weir.Reports{Pending: 1}); got != want {
			t.Errorf("in the outage: got %+v, want %+v", got, want)
		}
		s.set(false, "r")
		if d := takes(t, e, "user", "ann"); counts(d) != "r 2/20 " {
			t.Errorf("at once: got %s, want r 2/20", counts(d))
		}
		time.Sleep(time.Second)
		if d := takes(t, e, "user", "ann"); counts(d) != "r 8/20 " {
			t.Errorf("after the report: got %s, want r 8/20", counts(d))
		}
		if got, want := e.Reports(), (weir.Reports{Recorded: 5}); got != want {
			t.Errorf("after the report: got %+v, want %+v", got, want)
		}
		// Memory keeps its counts for the next outage, which reports none of them.
		s.set(true, "r")
		if d := takes(t, e, "user", "ann"); d.Allowed || counts(d) != "r 5/5 " {
			t.Errorf("in the next outage: got allowed %v, %s, want denied, r 5/5", d.Allowed, counts(d))
		}
		s.set(false, "r")
		takes(t, e, "user", "ann")
		time.Sleep(time.Second)
		if got, want := e.Reports(), (weir.Reports{Recorded: 5}); got != want {
			t.Errorf("after the next outage: got %+v, want %+v", got, want)
		}
	})
}

// A limiter and a counter report, too, at their Close at the latest. They do so without a
// given local store, too, as does an engine.
func TestLimiterReports(t *testing.T) {
	t.Parallel()
	local := memstore.New()
	defer local.Close()
	for name, options := range map[string][]weir.Option{"given": {weir.WithLocal(local, 1)}, "own": nil} {
		s := &shaky{Store: memstore.New(), out: map[string]bool{"posts": true, "views": true, "one": true}}
		t.Cleanup(func() { _ = s.Close() })
		options = append(options, weir.WithStore(s))
		of := func(name string) (list []weir.LimiterOption) {
			for _, o := range options {
				list = append(list, o)
			}
			return append(list, weir.WithName(name))
		}
		m := weir.MustLimiter(weir.Sliding(4, time.Hour), of("posts")...)
		c, err := weir.NewCounter(weir.Cells(1, time.Hour).Window, of("views")...)
		if err != nil {
			t.Fatal(err)
		}
		e := engine(t, []rule.Rule{{Name: "one", Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)}}, options...)
		for range 3 {
			_, _ = m.Allow(t.Context(), "ann")
			_, _ = c.Add(t.Context(), "home", 2)
			if d := takes(t, e); !d.Allowed || !d.Degraded {
				t.Errorf("%s, engine: got %+v, want it allowed and degraded", name, d)
			}
		}
		_, _ = m.Refund(t.Context(), "ann", 1)
		s.set(false, "posts", "views", "one")
		_ = m.Close()
		_ = c.Close()
		_ = e.Close()
		if r, err := m.Check(t.Context(), "ann"); r.Used != 2 || err != nil {
			t.Errorf("%s, limiter: got %d used, %v, want 2", name, r.Used, err)
		}
		if n, err := c.Count(t.Context(), "home", time.Hour); n != 6 || err != nil {
			t.Errorf("%s, counter: got %d, %v, want 6", name, n, err)
		}
		if d := takes(t, e); counts(d) != "one 4/9 " {
			t.Errorf("%s, engine: got %s, want one 4/9", name, counts(d))
		}
	}
}

// The number of nodes can change at any time, also during an outage.
func TestNodesChange(t *testing.T) {
	t.Parallel()
	var nodes atomic.Int64
	e, s := shakyEngine(t, []rule.Rule{{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 12}, Window: window.Sliding(time.Hour)}},
		weir.WithNodes(func() int { return int(nodes.Load()) }))
	defer e.Close()
	s.set(true, "r")
	for i, test := range []struct {
		nodes int64
		want  string
	}{{6, "r 1/2 "}, {3, "r 2/4 "}, {3, "r 3/4 "}, {0, "r 4/12 "}, {6, "r 4/2 "}} {
		nodes.Store(test.nodes)
		if d := takes(t, e, "user", "ann"); counts(d) != test.want {
			t.Errorf("take %d of %d nodes: got %s, want %s", i, test.nodes, counts(d), test.want)
		}
	}
	if _, err := weir.NewEngine(e.Rules(), weir.WithNodes(nil)); err == nil {
		t.Error("nil: got no error")
	}
}

// A report after a reload forgets nothing that the store has counted under a larger quota meanwhile.
func TestReportsAfterReloads(t *testing.T) {
	t.Parallel()
	for name, raised := range map[string]rule.Rule{
		"sliding":  {Window: window.Sliding(time.Hour)},
		"groups":   {Window: window.Sliding(time.Hour), Quota: &rule.Quota{Value: 1000}},
		"distinct": {Window: window.Sliding(time.Hour), Measure: window.Distinct, Of: "peer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				raised.Name, raised.Per = "r", []string{"user"}
				if raised.Quota == nil {
					raised.Quota = &rule.Quota{Value: 50}
				}
				old := raised
				old.Quota = &rule.Quota{Value: 5}
				e, s := shakyEngine(t, []rule.Rule{old})
				s.set(true, "r")
				takes(t, e, "user", "ann", "peer", "here")
				if err := e.SetRules(compile(t, []rule.Rule{raised})); err != nil {
					t.Fatal(err)
				}
				other := engine(t, []rule.Rule{raised}, weir.WithStore(s.Store))
				for i := range 30 {
					takes(t, other, "user", "ann", "peer", fmt.Sprint(i))
				}
				s.set(false, "r")
				time.Sleep(2 * time.Second)
				if u, err := other.Usage(t.Context(), "r", weir.Attributes("user", "ann")); err != nil || u.Used != 31 {
					t.Errorf("after the report: got %d used, %v, want 31", u.Used, err)
				}
			})
		})
	}
}

// A report of hits that were counted before a reload gave the rule a ban leaves the bans that
// another process has made by the new rules.
func TestReportLeavesBansOfNewRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plain := []rule.Rule{{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 3}, Window: window.Fixed(time.Hour)}}
		banning := []rule.Rule{plain[0]}
		banning[0].Ban = window.Ban{For: 2 * time.Hour}
		bans := compile(t, banning)
		e, s := shakyEngine(t, plain)
		defer e.Close()
		s.set(true, "r")
		takes(t, e, "user", "ann")
		if err := e.SetRules(bans); err != nil {
			t.Fatal(err)
		}
		other := engineOf(t, bans, weir.WithStore(s.Store))
		for range 4 {
			takes(t, other, "user", "ann")
		}
		s.set(false, "r")
		time.Sleep(2 * time.Second)
		if got, want := e.Reports(), (weir.Reports{Recorded: 1}); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		time.Sleep(time.Hour)
		if d := takes(t, e, "user", "ann"); d.Allowed {
			t.Errorf("an hour later: got %s, want denied by the ban", counts(d))
		}
	})
}
