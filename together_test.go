package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// itemsOf returns an item for each list of attributes.
func itemsOf(requests ...[]string) []weir.Item {
	items := make([]weir.Item, len(requests))
	for i, r := range requests {
		items[i].Request.Attributes = weir.Attributes(r...)
	}
	return items
}

func together(t *testing.T, e *weir.Engine, items []weir.Item) bool {
	t.Helper()
	allowed, err := e.Run(t.Context(), items, run.Options{Together: true})
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// usedBy returns what a rule has counted for a user.
func usedBy(t *testing.T, e *weir.Engine, rule, user string) int64 {
	t.Helper()
	u, err := e.Usage(t.Context(), rule, weir.Attributes("user", user))
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

var perUser = []rule.Rule{{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)}}

// All requests are counted, or none is. The answers say which of them exceed a
// limit.
func TestTogetherIsAllOrNothing(t *testing.T) {
	t.Parallel()
	e := engine(t, perUser)
	items := itemsOf([]string{"user", "ann"}, []string{"user", "bob"})
	items[1].Request.Hits = 5
	if !together(t, e, items) {
		t.Fatal("got denied, want allowed")
	}
	if together(t, e, items) {
		t.Fatal("got allowed, want denied: bob has no hits left")
	}
	if !items[0].Decision.Allowed || items[1].Decision.Allowed {
		t.Errorf("got %v and %v, want only bob denied", items[0].Decision.Allowed, items[1].Decision.Allowed)
	}
	if ann, bob := usedBy(t, e, "per-user", "ann"), usedBy(t, e, "per-user", "bob"); ann != 1 || bob != 5 {
		t.Errorf("got %d and %d hits, want 1 and 5", ann, bob)
	}
}

// Requests on one key count together: both fit, or neither.
func TestTogetherOnOneKey(t *testing.T) {
	t.Parallel()
	e := engine(t, perUser)
	items := itemsOf([]string{"user", "ann"}, []string{"user", "ann"})
	items[0].Request.Hits, items[1].Request.Hits = 2, 3
	if !together(t, e, items) {
		t.Fatal("got denied, want allowed")
	}
	for i := range items {
		if u := &items[i].Decision.Usages[0]; u.Used != 5 || u.Hits != items[i].Request.Hits {
			t.Errorf("request %d: got %d hits of %d used, want %d of 5", i, u.Hits, u.Used, items[i].Request.Hits)
		}
	}
}

// Many requests are decided as few are: what was taken is what the keys say.
func TestTogetherAgreesWithAModel(t *testing.T) {
	t.Parallel()
	e := engine(t, perUser)
	rnd := rand.New(rand.NewPCG(1, 2))
	used := map[string]int64{}
	for range 2000 {
		n := 1 + rnd.IntN(4)
		if rnd.IntN(20) == 0 {
			n = 50 + rnd.IntN(100)
		}
		items := make([]weir.Item, n)
		want := map[string]int64{}
		for i := range items {
			user := fmt.Sprint(rnd.IntN(3000))
			items[i].Request = weir.Request{Attributes: weir.Attributes("user", user), Hits: 1 + rnd.Int64N(2)}
			want[user] += items[i].Request.Hits
		}
		fits := true
		for user, hits := range want {
			fits = fits && used[user]+hits <= 5
		}
		if got := together(t, e, items); got != fits {
			t.Fatalf("got %v for %v, want %v", got, want, fits)
		}
		for user, hits := range want {
			if fits {
				used[user] += hits
			}
			if got := usedBy(t, e, "per-user", user); got != used[user] {
				t.Fatalf("user %s: got %d hits, want %d", user, got, used[user])
			}
		}
	}
}

// A verdict that denies one request keeps the others from counting. Counters and
// triggers count all the same.
func TestTogetherWithVerdicts(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "seen", Per: []string{"user"}, Window: window.Sliding(time.Hour)},
		{Name: "blocked", When: equals("user", "eve"), Then: rule.Deny},
		{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	})
	items := itemsOf([]string{"user", "ann"}, []string{"user", "eve"})
	if together(t, e, items) {
		t.Fatal("got allowed, want denied")
	}
	if d := &items[1].Decision; d.Allowed || d.Rule != "blocked" {
		t.Errorf("got %v by %q, want denied by blocked", d.Allowed, d.Rule)
	}
	if seen, used := usedBy(t, e, "seen", "ann"), usedBy(t, e, "per-user", "ann"); seen != 1 || used != 0 {
		t.Errorf("got %d seen and %d used, want 1 and 0", seen, used)
	}
}

// Rules after a verdict that allows count when all requests are allowed.
func TestTogetherBehindAVerdict(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Sliding(time.Hour)},
		{Name: "friends", When: equals("user", "ann"), Then: rule.Allow, CountRest: true},
		{Name: "behind", Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Sliding(time.Hour)},
	})
	items := itemsOf([]string{"user", "ann"}, []string{"user", "ann"})
	if !together(t, e, items) || usedBy(t, e, "behind", "ann") != 2 {
		t.Fatalf("got %d after the verdict, want 2", usedBy(t, e, "behind", "ann"))
	}
	if together(t, e, items) || usedBy(t, e, "behind", "ann") != 2 {
		t.Errorf("got %d after the verdict, want 2 still", usedBy(t, e, "behind", "ann"))
	}
}

// Each request that holds has a receipt. What two of them hold for one key belongs
// to the first.
func TestTogetherHolds(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{{Name: "in-flight", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Held(time.Minute)}})
	items := itemsOf([]string{"user", "ann"}, []string{"user", "bob"}, []string{"user", "bob"})
	if !together(t, e, items) {
		t.Fatal("got denied, want allowed")
	}
	if items[0].Decision.Receipt.IsZero() || items[1].Decision.Receipt.IsZero() || !items[2].Decision.Receipt.IsZero() {
		t.Fatalf("got receipts %v, %v and %v, want the first two", items[0].Decision.Receipt, items[1].Decision.Receipt, items[2].Decision.Receipt)
	}
	if got := usedBy(t, e, "in-flight", "bob"); got != 2 {
		t.Fatalf("got %d in flight, want 2", got)
	}
	if _, err := e.Settle(t.Context(), items[1].Decision.Receipt, items[1].Request); err != nil {
		t.Fatal(err)
	}
	if ann, bob := usedBy(t, e, "in-flight", "ann"), usedBy(t, e, "in-flight", "bob"); ann != 1 || bob != 0 {
		t.Errorf("got %d and %d in flight, want 1 and 0", ann, bob)
	}
}

// Requests that cannot be one are an error, and count nothing.
func TestTogetherFaults(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		perUser[0],
		{Name: "peers", Per: []string{"user"}, Measure: window.Distinct, Of: "peer", Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	})
	for name, items := range map[string][]weir.Item{
		"members":  itemsOf([]string{"user", "ann", "peer", "1"}, []string{"user", "ann", "peer", "2"}),
		"hits":     {{Request: weir.Request{Attributes: weir.Attributes("user", "ann")}}, {Request: weir.Request{Hits: -1}}},
		"too many": itemsOf(slicesOf(1000, "user", "ann")...),
	} {
		if _, err := e.Run(t.Context(), items, run.Options{Together: true, MaxSize: 10_000}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	busy := errors.New("busy")
	if _, err := e.Run(t.Context(), itemsOf([]string{"user", "ann"}, []string{"user", "bob"}), run.Options{Together: true, Admit: func(run.Size) error { return busy }}); !errors.Is(err, busy) {
		t.Errorf("got %v, want the error of admit", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Run(ctx, itemsOf(nil, nil), run.Options{Together: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if got := usedBy(t, e, "per-user", "ann"); got != 0 {
		t.Errorf("got %d hits, want none", got)
	}
	if allowed, err := (*weir.Engine)(nil).Run(t.Context(), nil, run.Options{Together: true}); allowed || err == nil {
		t.Errorf("a nil engine: got %v, %v", allowed, err)
	}
}

func slicesOf(n int, attributes ...string) [][]string {
	all := make([][]string, n)
	for i := range all {
		all[i] = attributes
	}
	return all
}

// deaf is a store that is unavailable.
type deaf struct{ store.Store }

func (deaf) Do(_ context.Context, calls []store.Call) error {
	for i := range calls {
		calls[i].Err = &store.OutageError{Err: errors.New("no answer")}
	}
	return nil
}

// In an outage the policies of the rules decide about all requests together.
func TestTogetherInAnOutage(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "open", When: equals("user", "ann"), Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageAllow},
		{Name: "closed", When: equals("user", "bob"), Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny},
	}, weir.WithStore(deaf{}))
	items := itemsOf([]string{"user", "ann"}, []string{"user", "bob"})
	if together(t, e, items) {
		t.Fatal("got allowed, want denied")
	}
	ann, bob := &items[0].Decision, &items[1].Decision
	if !ann.Allowed || !ann.Degraded || bob.Allowed || bob.Rule != "closed" {
		t.Errorf("got %+v and %+v, want bob denied by closed", ann, bob)
	}
	if !together(t, e, itemsOf([]string{"user", "ann"}, []string{"user", "ann", "n", "2"})) {
		t.Error("got denied, want allowed")
	}
}

// Rules that come with a request decide it. They share counters with rules of the
// same identity.
func TestRulesOfARequest(t *testing.T) {
	t.Parallel()
	e := engine(t, perUser)
	more := compile(t, []rule.Rule{{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: 7}, Window: window.Sliding(time.Hour)}})
	r := weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 5}
	if d, err := e.Take(t.Context(), r); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	r.Hits, r.Rules = 2, more
	if d, err := e.Take(t.Context(), r); err != nil || !d.Allowed || d.Usages[0].Used != 7 {
		t.Errorf("got %+v, %v, want 7 of 7 used", d, err)
	}
	items := []weir.Item{{Verb: store.Take, Request: r}, {Verb: store.Check, Request: weir.Request{Attributes: r.Attributes}}}
	if e.DoAll(t.Context(), items); items[0].Decision.Allowed || items[0].Decision.Usages[0].Quota != 7 || items[1].Decision.Usages[0].Quota != 5 {
		t.Errorf("got %+v, want quotas 7 and 5", items)
	}
	items = []weir.Item{{Request: weir.Request{Attributes: weir.Attributes("user", "bob"), Rules: more, Hits: 7}}, {Request: weir.Request{Attributes: weir.Attributes("user", "ann"), Rules: more}}}
	if together(t, e, items) || !items[0].Decision.Allowed {
		t.Errorf("got %+v, want ann denied", items)
	}
}

// The order of requests that are taken as one changes neither whether they are allowed nor
// what is counted. If they are allowed, no limit that one of them has to keep is exceeded,
// and their receipts release all that is in flight.
func TestTogetherInAnyOrder(t *testing.T) {
	t.Parallel()
	held := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 12))
		set := compile(t, rulesTogether(r))
		engines := [2]*weir.Engine{engineOf(t, set), engineOf(t, set)}
		for range 12 {
			items := make([]weir.Item, 1+r.IntN(4))
			for i := range items {
				items[i].Request = weir.Request{Hits: r.Int64N(3), Attributes: weir.Attributes("user", []string{"ann", "ann", "bob", "eve"}[r.IntN(4)],
					"plan", []string{"", "vip"}[r.IntN(2)], "cost", []string{"0", "1", "2"}[r.IntN(3)])}
			}
			other := slices.Clone(items)
			r.Shuffle(len(other), func(i, k int) { other[i], other[k] = other[k], other[i] })
			allowed := together(t, engines[0], items)
			if together(t, engines[1], other) != allowed {
				t.Fatalf("seed %d, %+v: got %v, and the contrary in another order", seed, items, allowed)
			}
			for _, user := range []string{"ann", "bob", "eve"} {
				for i := range set.Len() {
					ru := set.Rule(i)
					if ru.Kind() == rule.KindVerdict {
						continue
					}
					used := usedBy(t, engines[0], ru.Name, user)
					if got := usedBy(t, engines[1], ru.Name, user); got != used {
						t.Fatalf("seed %d, %+v: %s has %d used for %s, and %d in another order", seed, items, ru.Name, used, user, got)
					}
				}
			}
			for i := range items {
				d := &items[i].Decision
				for _, u := range d.Usages {
					if ru := ruleCalled(set, u.Rule); allowed && len(d.Verdicts) == 0 && ru.Kind() == rule.KindLimit && ru.Mode == rule.Enforce && u.Used > u.Quota {
						t.Fatalf("seed %d, %+v: got %+v, more than the limit", seed, items, u)
					}
				}
			}
			for e, all := range [][]weir.Item{items, other} {
				for i := range all {
					if d := &all[i].Decision; !d.Receipt.IsZero() {
						held++
						if _, err := engines[e].Settle(t.Context(), d.Receipt, weir.Request{Attributes: all[i].Request.Attributes}); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, user := range []string{"ann", "bob"} {
					if got := usedBy(t, engines[e], "in-flight", user); got != 0 {
						t.Fatalf("seed %d, %+v: got %d in flight after all receipts were settled", seed, all, got)
					}
				}
			}
		}
	}
	if held < 500 {
		t.Errorf("got %d receipts, want many", held)
	}
}

// rulesTogether returns rules of all kinds that count per user, in any order.
func rulesTogether(r *rand.Rand) []rule.Rule {
	rules := []rule.Rule{
		{Name: "in-flight", Per: []string{"user"}, Measure: window.Sum, Of: "cost", Quota: &rule.Quota{Value: 1 + r.Int64N(6)}, Window: window.Held(time.Hour)},
		{Name: "vip", When: equals("plan", "vip"), Then: rule.Allow, CountRest: true},
		{Name: "seen", Per: []string{"user"}, Window: window.Ever()},
	}
	if r.IntN(2) == 0 {
		rules = append(rules, rule.Rule{Name: "blocked", When: equals("user", "eve"), Then: rule.Deny})
	}
	for i := range 1 + r.IntN(3) {
		ru := rule.Rule{Name: fmt.Sprint("r", i), Per: []string{"user"}, Quota: &rule.Quota{Value: r.Int64N(8)}, Window: window.Ever()}
		switch r.IntN(6) {
		case 0:
			ru.Mode = rule.Shadow
		case 1:
			ru.CountDenied = true
		case 2:
			ru.Hold = time.Hour
		case 3:
			ru.Ban = window.Ban{For: time.Hour}
		case 4:
			ru.When = equals("plan", "vip")
		}
		rules = append(rules, ru)
	}
	r.Shuffle(len(rules), func(i, k int) { rules[i], rules[k] = rules[k], rules[i] })
	return rules
}

func ruleCalled(set *rule.Set, name string) *rule.Rule {
	i, _ := set.Find(name)
	return set.Rule(i)
}

// A request that no rule matches denies all, if the rules say so.
func TestTogetherUnmatched(t *testing.T) {
	t.Parallel()
	set, err := compile(t, perUser).WithUnmatched("deny")
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]weir.Option{nil, {weir.WithStore(struct{ *memstore.Store }{memstore.New()})}} {
		e := engineOf(t, set, options...)
		items := itemsOf([]string{"user", "ann"}, []string{"other", "x"})
		if together(t, e, items) || !items[0].Decision.Allowed || items[1].Decision.Allowed || !items[1].Decision.Unmatched {
			t.Errorf("got %+v and %+v, want that the second one denies", items[0].Decision, items[1].Decision)
		}
		if n := usedBy(t, e, "per-user", "ann"); n != 0 {
			t.Errorf("got %d used, want 0", n)
		}
	}
}

// Requests on one key are admitted only if all their hits fit, whatever each of them is
// to the rule: the strictest role and the smallest quota decide, in any order.
func TestTogetherIsAsStrictAsTheStrictest(t *testing.T) {
	t.Parallel()
	vip := rule.Rule{Name: "vip", When: equals("plan", "vip"), Then: rule.Allow, CountRest: true}
	limit := func(quota int64) rule.Rule {
		return rule.Rule{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: quota}, Window: window.Sliding(time.Hour)}
	}
	shadow, denied := limit(1), limit(1)
	shadow.Mode, denied.CountDenied = rule.Shadow, true
	ann := weir.Attributes("user", "ann")
	for name, tc := range map[string]struct {
		engine, other rule.Rule
		attributes    []weir.Attribute // of the other request
		want          int64            // used after a call that is denied
	}{
		"after a verdict": {limit(1), limit(1), weir.Attributes("user", "ann", "plan", "vip"), 0},
		"a larger quota":  {limit(1), limit(5), ann, 0},
		"a shadow rule":   {limit(1), shadow, ann, 0},
		"count denied":    {limit(1), denied, ann, 1},
	} {
		other := compile(t, []rule.Rule{vip, tc.other})
		for turn := range 2 {
			e := engine(t, []rule.Rule{vip, tc.engine})
			items := []weir.Item{{Request: weir.Request{Attributes: tc.attributes, Rules: other}}, {Request: weir.Request{Attributes: ann}}}
			if turn > 0 {
				items[0], items[1] = items[1], items[0]
			}
			if together(t, e, items) {
				t.Errorf("%s, turn %d: got 2 hits admitted, want 1 at most", name, turn)
			}
			if got := usedBy(t, e, "per-user", "ann"); got != tc.want {
				t.Errorf("%s, turn %d: got %d used, want %d", name, turn, got, tc.want)
			}
		}
	}
}

// A call that a verdict denies counts nothing in limits, also behind another verdict.
func TestTogetherDeniedByAVerdict(t *testing.T) {
	t.Parallel()
	e := engine(t, []rule.Rule{
		{Name: "blocked", When: equals("user", "eve"), Then: rule.Deny},
		{Name: "vip", When: equals("plan", "vip"), Then: rule.Allow, CountRest: true},
		{Name: "per-user", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	})
	vip, ann := []string{"user", "ann", "plan", "vip"}, []string{"user", "ann"}
	for _, items := range [][]weir.Item{itemsOf(vip, ann, []string{"user", "eve"}), itemsOf(ann, vip, []string{"user", "eve"})} {
		if together(t, e, items) {
			t.Error("got allowed, want denied")
		}
		if got := usedBy(t, e, "per-user", "ann"); got != 0 {
			t.Errorf("got %d used, want none", got)
		}
	}
}
