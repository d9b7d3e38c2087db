package weir_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

var (
	llmTokens = rule.Rule{
		Name: "llm-tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens",
		Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute,
	}
	llmCalls = rule.Rule{
		Name: "llm-calls", Per: []string{"team"}, Quota: &rule.Quota{Value: 3}, Window: window.Sliding(time.Minute),
	}
	exports = rule.Rule{
		Name: "exports-in-flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Held(30 * time.Second),
	}
)

// step is one call of an engine, and what it has to answer.
type step struct {
	verb    store.Verb
	attrs   []weir.Attribute
	receipt weir.Receipt
	allowed bool
	used    []int64 // by rule
	held    []bool
}

func do(t *testing.T, e *weir.Engine, s step) weir.Decision {
	t.Helper()
	var d weir.Decision
	r := weir.Request{Attributes: s.attrs, Receipt: s.receipt}
	if err := e.Do(t.Context(), s.verb, &r, &d); err != nil {
		t.Fatalf("%v: got error %v", s.verb, err)
	}
	var used []int64
	var held []bool
	for _, u := range d.Usages {
		used, held = append(used, u.Used), append(held, u.Held)
	}
	for i := range s.used {
		if i >= len(used) || d.Allowed != s.allowed || used[i] != s.used[i] || held[i] != s.held[i] {
			t.Fatalf("%v of %v: got allowed %v, used %v and held %v, want %v, %v and %v",
				s.verb, s.attrs, d.Allowed, used, held, s.allowed, s.used, s.held)
		}
	}
	return d
}

// A settle books what a call really cost, and leaves the calls of other rules.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{llmTokens, llmCalls})
		estimate, truth := weir.Attributes("team", "red", "tokens", "600"), weir.Attributes("team", "red", "tokens", "140")
		d := do(t, e, step{store.Take, estimate, weir.Receipt{}, true, []int64{600, 1}, []bool{true, false}})
		if text := d.Receipt.String(); len(text) == 0 || len(text) > 64 {
			t.Fatalf("got receipt %q, want up to 64 bytes of text", text)
		}
		denied := do(t, e, step{store.Take, estimate, weir.Receipt{}, false, []int64{600, 1}, []bool{false, false}})
		if !denied.Receipt.IsZero() || denied.RetryAfter != 5*time.Minute {
			t.Errorf("over the limit: got receipt %v and retry after %v, want none and 5m", denied.Receipt, denied.RetryAfter)
		}
		time.Sleep(10 * time.Second)
		do(t, e, step{store.Settle, truth, d.Receipt, true, []int64{140, 1}, []bool{true, false}})
		do(t, e, step{store.Settle, truth, d.Receipt, true, []int64{140, 1}, []bool{false, false}})
		do(t, e, step{store.Cancel, truth, d.Receipt, true, []int64{140, 1}, []bool{false, false}})
		time.Sleep(50*time.Second - time.Microsecond)
		do(t, e, step{store.Check, estimate, weir.Receipt{}, true, []int64{140, 1}, []bool{false, false}})
		time.Sleep(time.Microsecond) // the call has aged from its take on
		do(t, e, step{store.Check, estimate, weir.Receipt{}, true, []int64{0, 0}, []bool{false, false}})
	})
}

// A cancel gives back what its take counted in all rules, once.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{llmTokens, llmCalls})
		attrs := weir.Attributes("team", "red", "tokens", "100")
		first := do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{100, 1}, []bool{true, false}})
		time.Sleep(time.Second)
		second := do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{200, 2}, []bool{true, false}})
		time.Sleep(time.Second)
		do(t, e, step{store.Cancel, attrs, first.Receipt, true, []int64{100, 1}, []bool{true, false}})
		do(t, e, step{store.Cancel, attrs, first.Receipt, true, []int64{100, 1}, []bool{false, false}})
		other := weir.Attributes("team", "red") // a cancel needs no amount
		do(t, e, step{store.Cancel, other, second.Receipt, true, []int64{0, 0}, []bool{true, false}})
	})
}

// Places are released by their receipts, or when they were not renewed in time.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{exports})
		ann := weir.Attributes("user", "ann")
		first := do(t, e, step{store.Take, ann, weir.Receipt{}, true, []int64{1}, []bool{true}})
		time.Sleep(time.Second)
		second := do(t, e, step{store.Take, ann, weir.Receipt{}, true, []int64{2}, []bool{true}})
		third := do(t, e, step{store.Take, ann, weir.Receipt{}, false, []int64{2}, []bool{false}})
		if third.RetryAfter != 29*time.Second {
			t.Errorf("got retry after %v, want 29s", third.RetryAfter)
		}
		time.Sleep(28 * time.Second)
		do(t, e, step{store.Renew, ann, first.Receipt, true, []int64{2}, []bool{true}})
		time.Sleep(2 * time.Second) // too late for the second
		do(t, e, step{store.Renew, ann, second.Receipt, true, []int64{1}, []bool{false}})
		do(t, e, step{store.Settle, ann, first.Receipt, true, []int64{0}, []bool{true}})
		do(t, e, step{store.Settle, ann, first.Receipt, true, []int64{0}, []bool{false}})

		var d weir.Decision // without a receipt there is nothing in flight
		if err := e.Do(t.Context(), store.Take, &weir.Request{Attributes: ann, Final: true}, &d); err != nil || !d.Allowed || len(d.Usages) != 0 {
			t.Errorf("final: got %+v and error %v, want allowed by no rule", d, err)
		}
	})
}

// Receipts that no take has change nothing.
func TestUnknownReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{llmTokens, llmCalls, exports})
		attrs := weir.Attributes("team", "red", "user", "ann", "tokens", "100")
		do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{100, 1, 1}, []bool{true, false, true}})
		unknown := weir.Receipt{Take: seal.Take{ID: [12]byte{1}, At: window.At(time.Now()), Wall: window.At(time.Now())}}
		for _, verb := range []store.Verb{store.Settle, store.Cancel, store.Renew} {
			do(t, e, step{verb, attrs, unknown, true, []int64{100, 1, 1}, []bool{false, false, false}})
		}
	})
}

// After the secret of receipts was rotated, receipts of before are valid for the time
// that was stated, unless the secret is rotated once more.
func TestRotateSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := compile(t, []rule.Rule{llmTokens})
		s := memstore.New()
		e := engineOf(t, rules, weir.WithStore(s))
		attrs := weir.Attributes("team", "red", "tokens", "1")
		take := func(used int64) weir.Receipt {
			return do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{used}, []bool{true}}).Receipt
		}
		rotate := func(keep time.Duration) {
			if err := s.RotateSecret(t.Context(), keep); err != nil {
				t.Fatal(err)
			}
		}
		first, second := take(1), take(2)
		rotate(time.Minute)
		third := take(3)
		do(t, e, step{store.Cancel, attrs, first, true, []int64{2}, []bool{true}})
		time.Sleep(time.Minute)
		do(t, e, step{store.Cancel, attrs, second, true, []int64{2}, []bool{false}})
		rotate(time.Minute)
		rotate(time.Minute)
		do(t, e, step{store.Cancel, attrs, third, true, []int64{2}, []bool{false}})
		do(t, e, step{store.Cancel, attrs, take(3), true, []int64{2}, []bool{true}})
	})
}

// The nth strike bans for twice as long as the one before, a success forgets all
// of them, and otherwise one is forgotten a week.
func TestBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{{
			Name: "login-failures", Per: []string{"account"}, Quota: &rule.Quota{Value: 4}, Window: window.Sliding(15 * time.Minute),
			Ban:      window.Ban{For: 15 * time.Minute, Factor: 2, Most: time.Hour, Forget: 7 * 24 * time.Hour},
			Feedback: map[string]int64{"logged-in": window.All},
		}})
		attrs := weir.Attributes("account", "ann")
		fail := func() time.Duration { // until ann is banned
			for range 4 {
				do(t, e, step{store.Take, attrs, weir.Receipt{}, true, nil, nil})
			}
			began := window.At(time.Now())
			d := do(t, e, step{store.Take, attrs, weir.Receipt{}, false, []int64{0}, []bool{false}})
			if until := d.Usages[0].BannedUntil; !d.Usages[0].Banned || until.Sub(began) != d.RetryAfter {
				t.Errorf("got %+v, want banned for %v from %v on", d.Usages[0], d.RetryAfter, began)
			}
			return d.RetryAfter
		}
		for _, want := range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour, time.Hour} {
			if got := fail(); got != want {
				t.Errorf("got a ban of %v, want %v", got, want)
			}
			time.Sleep(want - time.Microsecond)
			do(t, e, step{store.Check, attrs, weir.Receipt{}, false, []int64{0}, []bool{false}})
			time.Sleep(time.Microsecond)
		}
		time.Sleep(14*24*time.Hour - time.Minute) // three strikes are left
		if got := fail(); got != time.Hour {
			t.Errorf("after two weeks: got a ban of %v, want 1h", got)
		}
		if _, err := e.Refund(t.Context(), weir.Request{Attributes: attrs, Feedback: "logged-in"}); err != nil {
			t.Fatal(err)
		}
		if got := fail(); got != 15*time.Minute {
			t.Errorf("after a success: got a ban of %v, want 15m", got)
		}
	})
}

// A limiter gives no receipts, so it refuses limits that hold. It bans.
func TestLimiterHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, l := range []weir.Limit{
		{Quota: 5, Window: window.Held(time.Minute)},
		{Quota: 5, Window: window.Sliding(time.Minute), Hold: time.Minute},
	} {
		if _, err := weir.NewLimiter(l); err == nil || !strings.Contains(err.Error(), "hold: ") {
			t.Errorf("%v: got error %v, want a fault in hold", l.Window, err)
		}
	}
	m := weir.MustLimiter(weir.Limit{Quota: 1, Window: window.Ever(), Ban: window.Ban{For: time.Minute}})
	defer m.Close()
	for i := range 3 {
		r, err := m.Allow(t.Context(), "ann")
		if err != nil || r.Allowed != (i == 0) || r.Banned != (i > 0) {
			t.Errorf("hit %d: got %+v and error %v, want banned from the second on", i, r, err)
		}
	}
}

// A batch has the verbs, each item on its own.
func TestHoldsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, []rule.Rule{exports})
		ann := weir.Attributes("user", "ann")
		items := []weir.Item{
			{Verb: store.Take, Request: weir.Request{Attributes: ann}},
			{Verb: store.Take, Request: weir.Request{Attributes: ann}},
			{Verb: store.Take, Request: weir.Request{Attributes: ann}},
		}
		e.DoAll(t.Context(), items)
		if a, b := items[0].Decision.Receipt, items[1].Decision.Receipt; a.IsZero() || b.IsZero() || a.Take.ID == b.Take.ID || items[2].Decision.Allowed {
			t.Fatalf("got receipts %v and %v, and the third allowed %v, want two and a denial", a, b, items[2].Decision.Allowed)
		}
		items = []weir.Item{
			{Verb: store.Settle, Request: weir.Request{Attributes: ann, Receipt: items[0].Decision.Receipt}},
			{Verb: store.Cancel, Request: weir.Request{Attributes: ann, Receipt: items[1].Decision.Receipt}},
			{Verb: store.Renew, Request: weir.Request{Attributes: ann, Receipt: items[1].Decision.Receipt}},
			{Verb: store.Settle, Request: weir.Request{Attributes: ann}},
			{Verb: store.Take, Request: weir.Request{Attributes: ann, Receipt: items[1].Decision.Receipt}},
		}
		e.DoAll(t.Context(), items)
		for i, held := range []bool{true, true, false} {
			if u := items[i].Decision.Usages[0]; u.Held != held || u.Used != int64(max(0, 1-i)) {
				t.Errorf("item %d: got %+v, want held %v", i, u, held)
			}
		}
		for _, item := range items[3:] {
			if item.Err == nil || !strings.Contains(item.Err.Error(), "receipt: ") {
				t.Errorf("%v: got error %v, want a fault in receipt", item.Verb, item.Err)
			}
		}
	})
}

// Hold is the length of the shortest hold of a take, and missing where there is none.
func TestHoldLength(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{llmTokens, llmCalls, exports})
	for attributes, want := range map[string]time.Duration{
		"team":          5 * time.Minute,
		"user":          30 * time.Second,
		"team and user": 30 * time.Second,
		"none":          0,
	} {
		r := weir.Request{Attributes: weir.Attributes("tokens", "1")}
		for _, name := range strings.Split(attributes, " and ") {
			r.Attributes = append(r.Attributes, weir.Attribute{Name: name, Value: attributes})
		}
		d, err := e.Take(t.Context(), r)
		if err != nil || d.Hold != want || d.Receipt.IsZero() != (want == 0) {
			t.Errorf("%s: got %v, %v, want a hold of %v", attributes, d.Hold, err, want)
		}
		items := []weir.Item{{Verb: store.Take, Request: r}, {Verb: store.Check, Request: r}}
		if e.DoAll(t.Context(), items); items[0].Decision.Hold != want || items[1].Decision.Hold != 0 {
			t.Errorf("%s: got %v and %v in a batch, want %v and 0", attributes, items[0].Decision.Hold, items[1].Decision.Hold, want)
		}
	}
}

// A cancel gives back only its own hits: not after they were refunded already, nor after a
// reload that makes them more of the quota or forgets their dates.
func TestCancelGivesBackOwnHits(t *testing.T) {
	flight := rule.Rule{Name: "flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Held(time.Hour)}
	groups := window.Sliding(time.Hour)
	groups.Precision = 2
	for name, tc := range map[string]struct {
		rule   rule.Rule
		quota  int64 // after the reload; 0: there is none
		hits   []int64
		refund int64
		want   int64
	}{
		"members": {rule.Rule{Measure: window.Distinct, Of: "peer", Window: window.Sliding(time.Hour), Quota: &rule.Quota{Value: 5}}, 0, []int64{1, 1}, 1, 1},
		"bucket":  {rule.Rule{Window: window.Bucket(time.Hour, 0), Quota: &rule.Quota{Value: 6}}, 3, []int64{2, 4}, 0, 3},
		"groups":  {rule.Rule{Window: groups, Quota: &rule.Quota{Value: 4}}, 2, []int64{1, 2}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tc.rule
				r.Name, r.Per = "r", []string{"user"}
				e := engine(t, []rule.Rule{flight, r})
				ann := weir.Request{Attributes: weir.Attributes("user", "ann", "peer", "bob")}
				var last weir.Decision
				for _, ann.Hits = range tc.hits {
					var err error
					if last, err = e.Take(t.Context(), ann); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				if tc.quota > 0 {
					r.Quota = &rule.Quota{Value: tc.quota}
					if err := e.SetRules(compile(t, []rule.Rule{flight, r})); err != nil {
						t.Fatal(err)
					}
				}
				own := ann
				if ann.Hits = tc.refund; tc.refund > 0 {
					if _, err := e.Refund(t.Context(), ann); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := e.Cancel(t.Context(), last.Receipt, own); err != nil {
					t.Fatal(err)
				}
				if got := usedBy(t, e, "r", "ann"); got != tc.want {
					t.Errorf("got %d used after the cancel, want %d", got, tc.want)
				}
			})
		})
	}
}
