package weir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// shaky is a store in memory that some rules cannot reach.
type shaky struct {
	*memstore.Store

	mu    sync.Mutex      // an engine reports from a goroutine of its own
	out   map[string]bool // by rule
	asked int
	why   []store.Reason // of the outages to come, in order; then none
}

// set sets whether rules are unavailable.
func (s *shaky) set(out bool, rules ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.out[r] = out
	}
}

var errOut = errors.New("unavailable")

func (s *shaky) Do(ctx context.Context, calls []store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for i := range calls {
		c := &calls[i]
		var out []int
		for n := range c.Ops {
			if s.out[c.Ops[n].Space.Name()] {
				out = append(out, n)
			}
		}
		if c.Err = s.outage(out); c.Err == nil {
			c.Err = s.Store.Do(ctx, calls[i:i+1])
		}
	}
	return nil
}

func (s *shaky) outage(ops []int) error {
	if ops == nil {
		return nil
	}
	out := &store.OutageError{Ops: ops, Err: errOut}
	if len(s.why) > 0 {
		out.Reason, s.why = s.why[0], s.why[1:]
	}
	return out
}

// Read cannot reach the same rules.
func (s *shaky) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out[op.Space.Name()] {
		return window.Reading{}, &store.OutageError{Err: errOut}
	}
	return s.Store.Read(ctx, op)
}

// shakyEngine returns an engine on a shaky store, with four nodes.
func shakyEngine(t *testing.T, rules []rule.Rule, options ...weir.Option) (*weir.Engine, *shaky) {
	t.Helper()
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	local := memstore.New()
	t.Cleanup(func() { s.Close(); local.Close() })
	return engine(t, rules, append(options, weir.WithStore(s), weir.WithLocal(local, 4))...), s
}

func takes(t *testing.T, e *weir.Engine, attributes ...string) weir.Decision {
	t.Helper()
	d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(attributes...)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// counts returns the decision's limits: rule, used, quota.
func counts(d weir.Decision) (s string) {
	for _, u := range d.Usages {
		s += fmt.Sprintf("%s %d/%d ", u.Rule, u.Used, u.Quota)
	}
	return s
}

// A take that local memory denies states what it asked for, and nothing of it is counted.
func TestLocalDenialsStateTheirHits(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "wide", Per: []string{"user"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)},
		{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
	})
	s.set(true, "wide", "r")
	d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 3})
	if err != nil || d.Allowed || d.Rule != "r" || d.Usages[1].Hits != 3 {
		t.Errorf("got %+v, %v, want a denial of 3 hits", d, err)
	}
	if got, want := counts(takes(t, e, "user", "ann")), "wide 1/25 r 1/2 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// While the store is unavailable, each of four nodes admits a quarter of the
// quota, rounded up; then the store's own count goes on.
func TestLocalSharesTheQuota(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour)}})
	takes(t, e, "user", "ann")
	s.set(true, "r")
	for i := range 5 {
		d := takes(t, e, "user", "ann")
		if want := i < 3; d.Allowed != want || !d.Degraded {
			t.Errorf("take %d: got allowed %v, degraded %v, want %v, true", i, d.Allowed, d.Degraded, want)
		}
		if got, want := counts(d), fmt.Sprintf("r %d/3 ", min(i+1, 3)); got != want {
			t.Errorf("take %d: got %s, want %s", i, got, want)
		}
	}
	s.set(false, "r")
	if d := takes(t, e, "user", "ann"); d.Degraded || counts(d) != "r 2/10 " {
		t.Errorf("afterwards: got degraded %v, %s, want r 2/10", d.Degraded, counts(d))
	}
}

// Each policy, with the store unavailable for that rule only.
func TestOutagePolicies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy  rule.Outage
		allowed bool
		numbers string
	}{
		{rule.OutageLocal, true, "out 1/2 up 1/5 "},
		{rule.OutageAllow, true, "up 1/5 "},
		{rule.OutageDeny, false, "up 0/5 "},
	} {
		e, s := shakyEngine(t, []rule.Rule{
			{Name: "out", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), OnOutage: test.policy},
			{Name: "up", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
		})
		s.set(true, "out")
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
	for _, test := range []struct {
		out, up int64
		rule    string
	}{{8, 1, "up"}, {4, 5, "out"}} {
		e, s := shakyEngine(t, []rule.Rule{
			{Name: "out", Per: []string{"user"}, Quota: &rule.Quota{Value: test.out}, Window: window.Sliding(time.Hour)},
			{Name: "seen", Per: []string{"user"}, Window: window.Sliding(time.Hour)},
			{Name: "up", Per: []string{"user"}, Quota: &rule.Quota{Value: test.up}, Window: window.Sliding(time.Hour)},
		})
		s.set(true, "out", "seen")
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
	e, s := shakyEngine(t, []rule.Rule{{Name: "r", Per: []string{"user"}, Quota: &rule.Quota{Value: 4}, Window: window.Fixed(time.Hour), CountDenied: true}})
	s.set(true, "r")
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

func (w *worsening) Do(ctx context.Context, calls []store.Call) error {
	if w.asked < len(w.rules) {
		w.set(true, w.rules[w.asked])
	}
	return w.shaky.Do(ctx, calls)
}

// A caller waits for a store that fails twice at most.
func TestStoreIsAskedTwice(t *testing.T) {
	t.Parallel()
	s := &worsening{&shaky{Store: memstore.New(), out: map[string]bool{}}, []string{"a", "b"}}
	local := memstore.New()
	t.Cleanup(func() { s.Close(); local.Close() })
	e := engine(t, []rule.Rule{
		{Name: "a", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
		{Name: "b", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
		{Name: "c", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
	}, weir.WithStore(s), weir.WithLocal(local, 4))
	if d := takes(t, e, "user", "ann"); !d.Allowed || counts(d) != "a 1/2 b 1/2 c 1/2 " || s.asked != 2 {
		t.Errorf("got allowed %v, %s, asked %d times, want all by memory after 2", d.Allowed, counts(d), s.asked)
	}
}

// Rules after a verdict decide nothing in an outage either, whatever their
// policy. What memory stands in for counts there.
func TestOutageBehindAVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		then    string
		policy  rule.Outage
		numbers string
	}{
		{rule.Allow, rule.OutageLocal, "out 1/2 up 1/5 "},
		{rule.Allow, rule.OutageAllow, "up 1/5 "},
		{rule.Allow, rule.OutageDeny, "up 1/5 "},
		{rule.Deny, rule.OutageLocal, "out 0/2 up 0/5 "},
		{rule.Deny, rule.OutageAllow, "up 0/5 "},
		{rule.Deny, rule.OutageDeny, "up 0/5 "},
	} {
		e, s := shakyEngine(t, []rule.Rule{
			{Name: "decides", When: equals("user", "ann"), Then: test.then, CountRest: true},
			{Name: "out", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), OnOutage: test.policy},
			{Name: "up", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
		})
		s.set(true, "out")
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
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "out", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny},
		{Name: "staff", When: equals("user", "ann"), Then: rule.Allow, CountRest: true},
		{Name: "up", Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	})
	s.set(true, "out")
	if d := takes(t, e, "user", "ann"); d.Allowed || d.Rule != "out" || counts(d) != "up 0/5 " {
		t.Errorf("got allowed %v by %q, %s, want denied by out, up 0/5", d.Allowed, d.Rule, counts(d))
	}
	s.set(false, "out")
	s.set(true, "up")
	if d := takes(t, e, "user", "ann"); !d.Allowed || !d.Degraded || counts(d) != "out 1/5 up 1/2 " {
		t.Errorf("got allowed %v, degraded %v, %s, want true, true, out 1/5 up 1/2", d.Allowed, d.Degraded, counts(d))
	}
}

// During an outage Usage answers from local memory, and says so.
func TestUsageInAnOutage(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "local", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour)},
		{Name: "closed", Per: []string{"user"}, Quota: &rule.Quota{Value: 8}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageDeny},
	})
	takes(t, e, "user", "ann")
	s.set(true, "local", "closed")
	_, _ = e.Record(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann"), Hits: 2})
	u, err := e.Usage(t.Context(), "local", weir.Attributes("user", "ann"))
	if err != nil || !u.Degraded || u.Used != 2 || u.Quota != 2 {
		t.Errorf("local: got %+v, %v, want 2 of this node's 2, degraded", u, err)
	}
	var out *store.OutageError
	if u, err := e.Usage(t.Context(), "closed", weir.Attributes("user", "ann")); !errors.As(err, &out) {
		t.Errorf("deny: got %+v, %v, want an outage", u, err)
	}
	s.set(false, "local")
	if u, err := e.Usage(t.Context(), "local", weir.Attributes("user", "ann")); err != nil || u.Degraded || u.Used != 1 {
		t.Errorf("afterwards: got %+v, %v, want 1 used", u, err)
	}
}

// A limiter on a store follows its own policy, and says so in the result.
func TestLimiterInAnOutage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		options []weir.LimiterOption
		allowed [3]bool
		used    int64 // by the last take
		quota   int64
	}{
		{"no policy, no local store", nil, [3]bool{true, true, true}, 3, 4},
		{"no local store, two nodes", []weir.LimiterOption{weir.WithNodes(func() int { return 2 })}, [3]bool{true, true, false}, 2, 2},
		{"deny", []weir.LimiterOption{weir.WithOutage(rule.OutageDeny)}, [3]bool{}, 0, 4},
		{"allow", []weir.LimiterOption{weir.WithOutage(rule.OutageAllow)}, [3]bool{true, true, true}, 0, 4},
		{"local", []weir.LimiterOption{weir.WithLocal(memstore.New(), 2)}, [3]bool{true, true, false}, 2, 2},
	} {
		s := &shaky{Store: memstore.New(), out: map[string]bool{"posts": true}}
		options := append(test.options, weir.WithStore(s), weir.WithName("posts"))
		m := weir.MustLimiter(weir.Sliding(4, time.Hour), options...)
		var last weir.Result
		for i, want := range test.allowed {
			r, err := m.Allow(t.Context(), "ann")
			if err != nil || r.Allowed != want || !r.Degraded || !want && r.RetryAfter <= 0 {
				t.Errorf("%s, take %d: got %+v, %v, want allowed %v, degraded", test.name, i, r, err, want)
			}
			last = r
		}
		if last.Used != test.used || last.Quota != test.quota {
			t.Errorf("%s: got %d of %d used, want %d of %d", test.name, last.Used, last.Quota, test.used, test.quota)
		}
		s.set(false, "posts")
		if r, err := m.Allow(t.Context(), "ann"); err != nil || !r.Allowed || r.Degraded || r.Used != 1 {
			t.Errorf("%s, afterwards: got %+v, %v, want allowed with 1 used", test.name, r, err)
		}
		s.Close()
	}
}

// A counter has nothing to admit: what nobody counted is an error.
func TestCounterInAnOutage(t *testing.T) {
	t.Parallel()
	s := &shaky{Store: memstore.New(), out: map[string]bool{"views": true}}
	defer s.Close()
	counter := func(options ...weir.LimiterOption) *weir.Counter {
		c, err := weir.NewCounter(window.Cells(time.Hour, 60), append(options, weir.WithStore(s), weir.WithName("views"))...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var out *store.OutageError
	if n, err := counter(weir.WithOutage(rule.OutageDeny)).Add(t.Context(), "home", 3); !errors.As(err, &out) {
		t.Errorf("deny: got %d, %v, want an outage", n, err)
	}
	if n, err := counter().Add(t.Context(), "home", 3); n != 3 || err != nil {
		t.Errorf("alone: got %d, %v, want 3", n, err)
	}
	if n, err := counter(weir.WithOutage(rule.OutageAllow)).Add(t.Context(), "home", 3); !errors.As(err, &out) {
		t.Errorf("allow: got %d, %v, want an outage", n, err)
	}
	local := memstore.New()
	defer local.Close()
	c := counter(weir.WithLocal(local, 2))
	if n, err := c.Add(t.Context(), "home", 3); n != 3 || err != nil {
		t.Errorf("local: got %d, %v, want 3", n, err)
	}
	if n, err := c.Count(t.Context(), "home", time.Hour); n != 3 || err != nil {
		t.Errorf("local: got a count of %d, %v, want 3", n, err)
	}
}

// What one request met in an outage does not reach the next one, whose memory
// is the same.
func TestOutageEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "first", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Sliding(time.Hour)},
		{Name: "staff", When: equals("user", "ann"), Then: rule.Allow, CountRest: true},
		{Name: "behind", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Sliding(time.Hour), OnOutage: rule.OutageAllow},
	})
	for i := range int64(8) {
		s.set(i%2 == 0, "behind")
		d := takes(t, e, "user", "ann")
		want := fmt.Sprintf("first %d/50 ", i+1)
		if i%2 == 1 {
			want += fmt.Sprintf("behind %d/50 ", (i+1)/2)
		}
		if !d.Allowed || d.Degraded != (i%2 == 0) || counts(d) != want {
			t.Errorf("take %d: got allowed %v, degraded %v, %s, want true, %v, %s", i, d.Allowed, d.Degraded, counts(d), i%2 == 0, want)
		}
	}
}

// A degraded decision has the first reason that it met, also when it met the
// outage after a verdict, and the next decision has none of it.
func TestReasonOfAnOutage(t *testing.T) {
	t.Parallel()
	e, s := shakyEngine(t, []rule.Rule{
		{Name: "first", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Sliding(time.Hour)},
		{Name: "staff", When: equals("user", "ann"), Then: rule.Allow, CountRest: true},
		{Name: "behind", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Sliding(time.Hour)},
	})
	for i, test := range []struct {
		out  string
		why  []store.Reason
		want store.Reason
	}{
		{"first behind", []store.Reason{"late", "busy"}, "late"},
		{"", nil, ""},
		{"behind", []store.Reason{"busy"}, "busy"},
		{"first", nil, "unknown"},
	} {
		s.set(strings.Contains(test.out, "first"), "first")
		s.set(strings.Contains(test.out, "behind"), "behind")
		s.why = test.why
		d := takes(t, e, "user", "ann")
		if d.DegradedReason != test.want || d.Degraded != (test.want != "") {
			t.Errorf("take %d: got degraded %v, %q, want %q", i, d.Degraded, d.DegradedReason, test.want)
		}
	}
}

// A limiter's result has the reason, too.
func TestReasonOfALimiter(t *testing.T) {
	t.Parallel()
	s := &shaky{Store: memstore.New(), out: map[string]bool{"posts": true}}
	defer s.Close()
	m := weir.MustLimiter(weir.Sliding(4, time.Hour), weir.WithStore(s), weir.WithName("posts"))
	for i, want := range []store.Reason{"circuit-open", "odd", "unknown", ""} {
		s.why = []store.Reason{want}
		s.set(i < 3, "posts")
		r, err := m.Allow(t.Context(), "ann")
		if err != nil || r.DegradedReason() != want {
			t.Errorf("take %d: got %q, %v, want %q", i, r.DegradedReason(), err, want)
		}
	}
}
