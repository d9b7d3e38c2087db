package drive_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/drive"
	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// However a store fails, once it answers again it holds all that was counted in
// its place: what memory counted joins what it has, and nothing joins twice.
func TestReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, reportedOnce) // without time passing, reports are sent only at the end
}

func reportedOnce(t *testing.T) {
	shapes := []window.Limit{
		{Quota: 4, Window: window.Fixed(time.Hour)},
		{Quota: 90, Window: window.Sliding(time.Hour)},
		{Quota: window.Unlimited, Window: window.Cells(time.Hour, 0)},
		{Quota: 1000, Window: window.Calendar(window.Year, nil)},
		{Quota: 99, Measure: window.Distinct, Window: window.Sliding(time.Hour)},
	}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 2))
		inner, local := storetest.NewModel(), storetest.NewModel()
		at := window.At(time.Now())
		inner.Set(at)
		local.Set(at)
		s := &failing{Store: inner.Store}
		chance := r.Float64()
		s.fail = func(int, int) bool { return r.Float64() < chance }
		reports := report.New(s, nil)
		d := &drive.Driver{Store: s, Local: &drive.Local{Store: local.Store, Nodes: 1 + r.Int64N(3), Reporter: reports, End: reports.Close}}
		limit := window.MustCompile(shapes[seed%uint64(len(shapes))])
		distinct := limit.Measure == window.Distinct
		member := func() byte { return 'a' + byte(r.IntN(3)) }
		if distinct {
			seen := map[byte]bool{} // a member that both count would be one in the store
			member = func() byte {
				m := byte(len(seen))
				seen[m] = true
				return m
			}
		}
		var ops []store.Op
		for i := range 3 {
			o := op(i, 0, store.Enforce)
			o.Limit = limit
			ops = append(ops, o)
		}
		for range 30 {
			var task drive.Task
			task.Verb = []store.Verb{store.Take, store.Take, store.Take, store.Record, store.Refund, store.Check}[r.IntN(6)]
			if distinct && task.Verb == store.Refund {
				continue
			}
			var policy policies
			refused := task.Verb == store.Take && r.IntN(5) == 0
			for i, o := range ops {
				o.N, o.Member = int64(r.IntN(4)), []byte{member()}
				o.Role = []store.Role{store.Enforce, store.Enforce, store.Shadow, store.Always}[r.IntN(4)]
				if refused && o.Role == store.Enforce {
					o.Role = store.Look
				}
				o.CountDenied = o.Role != store.Always && r.IntN(6) == 0
				task.Ops, task.Of = append(task.Ops, o), append(task.Of, i)
				policy = append(policy, []rule.Outage{rule.OutageLocal, rule.OutageLocal, rule.OutageAllow, rule.OutageDeny}[r.IntN(4)])
			}
			task.Policies, task.Refused = policy, refused
			d.Run(t.Context(), &task, nil)
			if task.Err != nil {
				t.Fatalf("seed %d: got error %v", seed, task.Err)
			}
		}
		var want []int64
		for i := range ops {
			want = append(want, used(t, inner.Store, &ops[i])+used(t, local.Store, &ops[i]))
		}
		s.fail = func(int, int) bool { return false }
		d.Close()
		var got []int64
		for i := range ops {
			got = append(got, used(t, inner.Store, &ops[i]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: got %d used after the report, want %d: %+v", seed, got, want, d.Reports())
		}
	}
}
