package weir_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// FuzzFast compares the fast path with the general path: two engines decide the same
// requests by the same rules, and one of them has its store in memory behind another
// type, so that it has no fast path.
func FuzzFast(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Add(uint64(230)) // two rules whose waits are close, one of them full
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { fastLikeGeneral(t, rand.New(rand.NewPCG(seed, 11))) })
	})
}

func fastLikeGeneral(t *testing.T, r *rand.Rand) {
	rules := make([]rule.Rule, 1+r.IntN(4))
	for i := range rules {
		rules[i] = fastRule(r, i)
	}
	set, err := rule.New(rules, map[string]rule.Outcome{"captcha": {}})
	if err == nil && r.IntN(2) == 0 {
		set, err = set.WithAddresses("user")
	}
	if err != nil {
		t.Fatal(err)
	}
	most := []int64{0, 0, 250, 500}[r.IntN(4)]
	open := func(options ...weir.Option) *weir.Engine {
		e, err := weir.NewEngine(set, options...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	inside := memstore.New()
	defer inside.Close()
	fast, general := open(), open(weir.WithStore(struct{ *memstore.Store }{inside}))
	defer fast.Close()
	users := []string{"", "ann", "10.0.0.1", "::ffff:10.0.0.1", " ann", strings.Repeat("long", 40), strings.Repeat("x", 62), strings.Repeat("y", 63)}
	var got, want [1]weir.Item
	for range 100 {
		verb := []store.Verb{store.Take, store.Take, store.Take, store.Check, store.Record, store.Refund}[r.IntN(6)]
		req := weir.Request{
			Attributes: weir.Attributes("user", users[r.IntN(len(users))], "a", fmt.Sprint(r.IntN(2)), "other", "x", "team", users[r.IntN(2)],
				"cost", []string{"2.5", "", "0", "1", "3"}[r.IntN(17)%5], "path", fmt.Sprint(r.IntN(4))),
			Hits:  []int64{0, 0, 1, 2, 7, -1, window.MaxHits + 5}[r.IntN(7)],
			Final: r.IntN(2) == 0,
		}
		if verb == store.Refund && r.IntN(2) == 0 || r.IntN(50) == 0 {
			req.Feedback = "solved"
		}
		var admit func(run.Size) error
		var sizes [2][]run.Size
		if r.IntN(3) == 0 {
			refuse := r.IntN(3) == 0
			which := 0
			admit = func(s run.Size) error {
				sizes[which] = append(sizes[which], s)
				which++
				if refuse {
					return errors.New("too much")
				}
				return nil
			}
		}
		got[0].Verb, got[0].Request, want[0].Verb, want[0].Request = verb, req, verb, req
		_, gotErr := fast.Run(t.Context(), got[:], run.Options{MaxSize: most, Admit: admit})
		_, wantErr := general.Run(t.Context(), want[:], run.Options{MaxSize: most, Admit: admit})
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(sizes[0], sizes[1]) {
			t.Fatalf("%v %+v: got error %v and sizes %v, want %v and %v", verb, req, gotErr, sizes[0], wantErr, sizes[1])
		}
		if g, w := answerOf(&got[0].Decision), answerOf(&want[0].Decision); g != w {
			t.Fatalf("%v %+v by %+v:\ngot  %s\nwant %s", verb, req, rules, g, w)
		}
		time.Sleep(time.Duration(r.Int64N(int64(5 * time.Second))))
	}
}

// answerOf returns d as text, without what differs from store to store: receipts are
// random, and when a full one may have room is a bound that depends on its sweeps. So does
// which of several rules has the longest wait.
func answerOf(d *weir.Decision) string {
	c := *d
	c.Receipt.Take.ID, c.Receipt.Take.Counted, c.Rules = [12]byte{}, [seal.MostCounted]uint32{}, nil
	if d.Degraded && c.RetryAfter > 0 {
		c.RetryAfter, c.RetryRule = 1, ""
	}
	return fmt.Sprintf("%+v %v %v", c, d.Receipt.IsZero(), d.Rules != nil)
}

// fastRule returns a rule that is often plain.
func fastRule(r *rand.Rand, i int) rule.Rule {
	windows := []window.Window{
		window.Sliding(time.Minute), window.Fixed(10 * time.Second), window.Bucket(20*time.Second, 3),
		window.Cells(time.Minute, 4), window.Calendar(window.Minute, nil),
	}
	ru := rule.Rule{
		Name: fmt.Sprint("r", i), Per: [][]string{{"user"}, {"user"}, {"team", "user"}, nil}[r.IntN(4)],
		Quota: &rule.Quota{Value: int64(r.IntN(6))}, Window: windows[r.IntN(len(windows))],
		MaxKeys: []int64{0, 0, 0, 2}[r.IntN(4)], OnOutage: rule.Outage(r.IntN(3)),
	}
	if r.IntN(3) == 0 {
		ru.Near = 1 + r.IntN(100)
	}
	switch r.IntN(12) {
	case 0:
		ru.Mode = rule.Shadow
	case 1:
		ru.Then = "captcha"
	case 2:
		ru.CountDenied = true
	case 3:
		ru.Quota = &rule.Quota{By: "a", Cases: map[string]int64{"0": 2}}
	case 4:
		ru.Ban = window.Ban{For: 30 * time.Second}
	case 5:
		ru.Quota, ru.Near, ru.Window = nil, 0, windows[1] // a counter
	case 6:
		ru.Quota, ru.Near, ru.Trigger, ru.Once = nil, 0, int64(1+r.IntN(4)), r.IntN(2) == 0
	case 7:
		ru.Measure, ru.Of = window.Sum, "cost"
	case 8:
		ru.Measure, ru.Of, ru.Window = window.Distinct, "path", windows[r.IntN(2)]
	}
	if ru.Quota != nil && r.IntN(8) == 0 && ru.Ban.For == 0 && !ru.CountDenied && ru.Measure == window.Count {
		ru.Hold, ru.Window = 20*time.Second, window.Sliding(time.Minute)
	}
	if r.IntN(2) == 0 {
		ru.When = []rule.Condition{{Attribute: "a", Test: rule.Equal(fmt.Sprint(r.IntN(2))), Trim: r.IntN(8) == 0}}
	}
	return ru
}
