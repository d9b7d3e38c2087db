package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// step is a call of one op, at a time after the start of its case.
type step struct {
	at    time.Duration
	verb  store.Verb
	n     int64
	who   int // the member
	named byte
	taken time.Duration // when the hits to cancel were taken
}

// TestAgreesInCases plays cases that random traffic rarely meets.
func TestAgreesInCases(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	members := func(quota int64) window.Limit {
		return window.Limit{Quota: quota, Measure: window.Distinct, Window: window.Sliding(time.Minute)}
	}
	// The newest of quota+1 members is refunded when the oldest, which was dropped, has
	// left; then the clock is set back to when that was inside.
	setBack := func(quota int) (steps []step) {
		for i := range quota + 1 {
			at := time.Duration(i) * time.Millisecond
			if i > 0 {
				at += 10 * time.Second
			}
			steps = append(steps, step{at: at, verb: store.Record, n: 1, who: i})
		}
		return append(steps, step{at: 61 * time.Second, verb: store.Refund, n: 1, who: quota},
			step{at: 30 * time.Second, verb: store.Take, n: 1, who: quota + 1},
			step{at: 30 * time.Second, verb: store.Take, n: 1, who: quota + 2})
	}
	// Members that have left stay in the set for some calls. Then the clock is set back to when they were inside.
	var leave []step
	for i := range 80 {
		leave = append(leave, step{at: time.Duration(i) * time.Millisecond, verb: store.Take, n: 1, who: i})
	}
	leave = append(leave, step{at: 30 * time.Second, verb: store.Take, n: 1, who: 80},
		step{at: 61 * time.Second, verb: store.Take, n: 1, who: 81},
		step{at: 61 * time.Second, verb: store.Refund, n: 1, who: 81},
		step{at: 31 * time.Second, verb: store.Take, n: 1, who: 79})
	after := func(inner window.Window) window.Limit {
		return window.Limit{Quota: 1, Window: inner, After: window.After{Count: 2, Window: window.Sliding(10 * time.Minute)}}
	}
	groups := window.Sliding(time.Minute)
	groups.Precision = 10
	cases := []struct {
		name  string
		limit window.Limit
		steps []step
	}{
		{"a refund after the dropped members have left", members(2), setBack(2)},
		{"a refund after the dropped members have left, in a set", members(70), setBack(70)},
		{"a refund after members have left", members(100), leave},
		{"a cancel of hits past a condition", after(window.Bucket(time.Minute, 0)), []step{
			{verb: store.Record, n: 1},
			{at: time.Second, verb: store.Record, n: 5},
			{at: 8 * time.Minute, verb: store.Take, n: 1, named: 1},
			{at: 8*time.Minute + time.Second, verb: store.Cancel, n: 1, named: 1, taken: 8 * time.Minute},
			{at: 8*time.Minute + time.Second, verb: store.Refund, n: 3},
			{at: 8*time.Minute + time.Second, verb: store.Take, n: 2},
		}},
		{"cancels of groups past the quota", window.Limit{Quota: 20, Window: groups}, []step{
			{verb: store.Take, n: 5, named: 1},
			{at: time.Second, verb: store.Take, n: 5, named: 2},
			{at: 2 * time.Second, verb: store.Record, n: 14},
			{at: 3 * time.Second, verb: store.Cancel, n: 5, named: 1},
			{at: 4 * time.Second, verb: store.Cancel, n: 5, named: 2, taken: time.Second},
			{at: 61 * time.Second, verb: store.Take, n: 7},
		}},
		{"an exported period that began in 1970", window.Limit{Quota: 5, Window: window.Aligned(25_000 * 24 * time.Hour), Export: true}, []step{
			{verb: store.Take, n: 2, named: 1},
			{at: time.Second, verb: store.Record, n: 2},
			{at: 2 * time.Second, verb: store.Cancel, n: 2, named: 1},
			{at: 3 * time.Second, verb: store.Take, n: 4},
		}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			got, want := open(t, c), storetest.NewModel()
			start := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
			space, limit := store.NewSpace("", test.name, "rule", 0), window.MustCompile(test.limit)
			for i, s := range test.steps {
				ops := func() []store.Op {
					op := store.Op{Space: space, Limit: limit, Key: []byte("key"), N: s.n}
					if limit.Measure == window.Distinct {
						op.Member = fmt.Append(nil, "member", s.who)
					}
					if s.named > 0 {
						op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{s.named}}, Sure: true}
						if s.verb == store.Cancel {
							op.Hold.At = start.Add(s.taken)
						}
					}
					return []store.Op{op}
				}
				play := func(st store.Store, set func(window.Instant)) window.Result {
					set(start.Add(s.at))
					o := ops()
					if err := store.Do(t.Context(), st, s.verb, o); err != nil {
						t.Fatal(err)
					}
					return o[0].Result
				}
				if g, w := play(got.Store, got.Set), play(want.Store, want.Set); g != w {
					t.Fatalf("step %d, %v:\ngot  %+v\nwant %+v", i, s.verb, g, w)
				}
			}
		})
	}
}
