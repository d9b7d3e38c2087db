package weir_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// shaky is a store in memory that some rules cannot reach.
type shaky struct {
	*memstore.Store
	out   map[string]bool // by rule
	asked int
}

var errOut = errors.New("out of reach")

func (s *shaky) Do(ctx context.Context, verb store.Verb, ops []store.Op) error {
	s.asked++
	var out []int
	for i := range ops {
		if s.out[ops[i].Space.Name] {
			out = append(out, i)
		}
	}
	if out != nil {
		return &store.OutageError{Ops: out, Err: errOut}
	}
	return s.Store.Do(ctx, verb, ops)
}

// shakyEngine is an engine on a shaky store, with four nodes.
func shakyEngine(t *testing.T, src string) (*weir.Engine, *shaky) {
	t.Helper()
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	local := memstore.New()
	t.Cleanup(func() { s.Close(); local.Close() })
	return engine(t, src, weir.WithStore(s), weir.WithLocal(local, 4)), s
}

func takes(t *testing.T, e *weir.Engine, attributes ...string) weir.Decision {
	t.Helper()
	d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(attributes...)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// counts are the decision's limits: rule, used, quota.
func counts(d weir.Decision) (s string) {
	for _, u := range d.Limits {
		s += fmt.Sprintf("%s %d/%d ", u.Rule, u.Used, u.Quota)
	}
	return s
}

// While the store is out of reach, each of four nodes admits a quarter of the
// quota, rounded up; then the store's own count goes on.
func TestLocalSharesTheQuota(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, `rules: [{name: r, per: [user], limit: 10, window: 1h}]`)
	takes(t, e, "user", "ann")
	s.out["r"] = true
	for i := range 5 {
		d := takes(t, e, "user", "ann")
		if want := i < 3; d.Allowed != want || !d.Degraded {
			t.Errorf("take %d: got allowed %v, degraded %v, want %v, true", i, d.Allowed, d.Degraded, want)
		}
		if got, want := counts(d), fmt.Sprintf("r %d/3 ", min(i+1, 3)); got != want {
			t.Errorf("take %d: got %s, want %s", i, got, want)
		}
	}
	s.out["r"] = false
	if d := takes(t, e, "user", "ann"); d.Degraded || counts(d) != "r 2/10 " {
		t.Errorf("afterwards: got degraded %v, %s, want r 2/10", d.Degraded, counts(d))
	}
}

// Each policy, with the store out of reach for that rule only.
func TestOutagePolicies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy  string
		allowed bool
		numbers string
	}{
		{"local", true, "out 1/2 up 1/5 "},
		{"allow", true, "up 1/5 "},
		{"deny", false, "up 0/5 "},
	} {
		e, s := shakyEngine(t, `rules:
  - {name: out, per: [user], limit: 5, window: 1h, on_outage: `+test.policy+`}
  - {name: up, per: [user], limit: 5, window: 1h}`)
		s.out["out"] = true
		d := takes(t, e, "user", "ann")
		if d.Allowed != test.allowed || counts(d) != test.numbers || !d.Degraded {
			t.Errorf("%s: got allowed %v, degraded %v, %s, want %v, true, %s",
				test.policy, d.Allowed, d.Degraded, counts(d), test.allowed, test.numbers)
		}
		if !test.allowed && (d.Rule != "out" || d.RetryAfter != time.Second) {
			t.Errorf("%s: got rule %q, retry after %v, want out, 1s", test.policy, d.Rule, d.RetryAfter)
		}
	}
}

// A take stays all or nothing when memory answers for one rule and the store
// for the other, whichever of them denies.
func TestLocalIsAllOrNothing(t *testing.T) {
	t.Parallel()
	const src = `rules:
  - {name: out, per: [user], limit: %d, window: 1h}
  - {name: seen, per: [user], window: 1h}
  - {name: up, per: [user], limit: %d, window: 1h}`
	for _, test := range []struct {
		out, up int
		rule    string
	}{{8, 1, "up"}, {4, 5, "out"}} {
		e, s := shakyEngine(t, fmt.Sprintf(src, test.out, test.up))
		s.out["out"], s.out["seen"] = true, true
		first := takes(t, e, "user", "ann")
		if !first.Allowed {
			t.Fatalf("%s: first take: got denied by %s", test.rule, first.Rule)
		}
		for i := range 3 {
			d := takes(t, e, "user", "ann")
			want := fmt.Sprintf("out 1/%d seen %d/-1 up 1/%d ", test.out/4, i+2, test.up)
			if d.Allowed || d.Rule != test.rule || counts(d) != want {
				t.Errorf("%s, take %d: got allowed %v by %q, %s, want denied, %s", test.rule, i, d.Allowed, d.Rule, counts(d), want)
			}
		}
	}
}

// A rule that counts what it denies does so in memory too.
func TestLocalCountsDenied(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, `rules: [{name: r, per: [user], limit: 4, window: {fixed: 1h}, count_denied: true}]`)
	s.out["r"] = true
	for i := range 3 {
		if d := takes(t, e, "user", "ann"); d.Allowed != (i == 0) || counts(d) != fmt.Sprintf("r %d/1 ", i+1) {
			t.Errorf("take %d: got allowed %v, %s", i, d.Allowed, counts(d))
		}
	}
}

// worsening is a store that loses one rule more with every call.
type worsening struct {
	*shaky
	rules []string
}

func (w *worsening) Do(ctx context.Context, verb store.Verb, ops []store.Op) error {
	if w.asked < len(w.rules) {
		w.out[w.rules[w.asked]] = true
	}
	return w.shaky.Do(ctx, verb, ops)
}

// A caller waits for a store that fails twice at most.
func TestStoreIsAskedTwice(t *testing.T) {
	t.Parallel()
	s := &worsening{&shaky{Store: memstore.New(), out: map[string]bool{}}, []string{"a", "b"}}
	local := memstore.New()
	t.Cleanup(func() { s.Close(); local.Close() })
	e := engine(t, `rules:
  - {name: a, per: [user], limit: 8, window: 1h}
  - {name: b, per: [user], limit: 8, window: 1h}
  - {name: c, per: [user], limit: 8, window: 1h}`, weir.WithStore(s), weir.WithLocal(local, 4))
	if d := takes(t, e, "user", "ann"); !d.Allowed || counts(d) != "a 1/2 b 1/2 c 1/2 " || s.asked != 2 {
		t.Errorf("got allowed %v, %s, asked %d times, want all by memory after 2", d.Allowed, counts(d), s.asked)
	}
}

// Rules behind a verdict decide nothing in an outage either, whatever their
// policy. What memory stands in for counts there.
func TestOutageBehindAVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ then, policy, numbers string }{
		{"allow", "local", "out 1/2 up 1/5 "},
		{"allow", "allow", "up 1/5 "},
		{"allow", "deny", "up 1/5 "},
		{"deny", "local", "out 0/2 up 0/5 "},
		{"deny", "allow", "up 0/5 "},
		{"deny", "deny", "up 0/5 "},
	} {
		e, s := shakyEngine(t, `rules:
  - {name: decides, when: {user: ann}, then: `+test.then+`, rest: count}
  - {name: out, per: [user], limit: 5, window: 1h, on_outage: `+test.policy+`}
  - {name: up, per: [user], limit: 5, window: 1h}`)
		s.out["out"] = true
		d := takes(t, e, "user", "ann")
		if d.Outcome != test.then || d.Rule != "decides" || counts(d) != test.numbers || !d.Degraded {
			t.Errorf("%s, %s: got %s by %s, %s, degraded %v, want %s by decides, %s, true",
				test.then, test.policy, d.Outcome, d.Rule, counts(d), d.Degraded, test.then, test.numbers)
		}
	}
}

// A limit before a verdict that nobody can answer denies by its policy, and
// the rules behind count nothing. When it is they that nobody can answer, what
// the limits before have admitted stays admitted.
func TestOutageBeforeAVerdict(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, `rules:
  - {name: out, per: [user], limit: 5, window: 1h, on_outage: deny}
  - {name: staff, when: {user: ann}, then: allow, rest: count}
  - {name: up, per: [user], limit: 5, window: 1h}`)
	s.out["out"] = true
	if d := takes(t, e, "user", "ann"); d.Allowed || d.Rule != "out" || counts(d) != "up 0/5 " {
		t.Errorf("got allowed %v by %q, %s, want denied by out, up 0/5", d.Allowed, d.Rule, counts(d))
	}
	s.out["out"], s.out["up"] = false, true
	if d := takes(t, e, "user", "ann"); !d.Allowed || !d.Degraded || counts(d) != "out 1/5 up 1/2 " {
		t.Errorf("got allowed %v, degraded %v, %s, want true, true, out 1/5 up 1/2", d.Allowed, d.Degraded, counts(d))
	}
}
