package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// question is a call of the tests.
type question struct {
	key        string
	attributes []weir.Attribute
	hits       int64
}

func byKey(l *weir.Limiter) (*guard.Middleware[question], error) {
	return guard.Keys(l, func(q question) string { return q.key }, guard.Options[question]{
		Name: "posts", Cost: func(q question) int64 { return q.hits },
	})
}

func byRules(d guard.Decider) (*guard.Middleware[question], error) {
	return guard.Rules(d, func(q question, list []weir.Attribute) []weir.Attribute {
		return append(list, q.attributes...)
	}, guard.Options[question]{})
}

// used returns what a rule has counted for a user.
func used(t *testing.T, e *weir.Engine, rule, user string) int64 {
	t.Helper()
	u, err := e.Usage(t.Context(), rule, weir.Attributes("user", user))
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

// A guard does not decide by a limiter or an engine that decides nothing.
func TestArguments(t *testing.T) {
	t.Parallel()
	posts := guardtest.Limiter(t, weir.Sliding(1, time.Minute))
	peers := guardtest.Limiter(t, weir.Members(1, time.Minute))
	key := func(k string) string { return k }
	for name, make := range map[string]func() error{
		"nil or zero": func() error { _, err := byKey(nil); return err },
		"distinct":    func() error { _, err := byKey(peers); return err },
		"engine":      func() error { _, err := byRules(nil); return err },
		"zero: make":  func() error { _, err := byRules(new(weir.Engine)); return err },
		"key: nil":    func() error { _, err := guard.Keys[string](posts, nil, guard.Options[string]{}); return err },
		"limiter": func() error {
			_, err := guard.Keys(nil, key, guard.Options[string]{})
			return err
		},
		"attributes: nil": func() error {
			_, err := guard.Rules[string](guardtest.Engine(t, []rule.Rule{{Name: "a", Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)}}, nil), nil, guard.Options[string]{})
			return err
		},
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error about %q", err, name)
		}
	}
}

// A call without a key and a call with an empty attribute are errors, and count nothing.
func TestNothingToDecideBy(t *testing.T) {
	t.Parallel()
	posts := guardtest.Limiter(t, weir.Sliding(1, time.Minute))
	g := must(byKey(posts))
	for range 3 {
		if _, err := g.Take(t.Context(), question{}); !errors.Is(err, guard.ErrNoKey) {
			t.Fatalf("got %v, want ErrNoKey", err)
		}
	}
	if c, err := g.Take(t.Context(), question{key: "ann"}); err != nil || !c.Allowed {
		t.Errorf("got %v and allowed %v for a call with a key", err, c.Allowed)
	}

	e := guardtest.Engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)}}, nil)
	rules := must(byRules(e))
	_, err := rules.Take(t.Context(), question{attributes: weir.Attributes("ip", "192.0.2.1", "user", "")})
	if err == nil || !strings.Contains(err.Error(), "attribute user is empty") || guard.ProblemOf(err).Status != 400 {
		t.Errorf("got %v, want the attribute that is empty", err)
	}
	// A request that lacks the attribute matches no rule.
	if c, err := rules.Take(t.Context(), question{attributes: weir.Attributes("ip", "192.0.2.1")}); err != nil || !c.Decision().Unmatched {
		t.Errorf("got %v %+v, want no rule that matches", err, c.Decision())
	}
}

// Hits are the cost: 0 means 1, and a negative cost is an error.
func TestHits(t *testing.T) {
	t.Parallel()
	g := must(byKey(guardtest.Limiter(t, weir.Sliding(10, time.Minute))))
	for _, step := range []struct{ hits, left int64 }{{0, 9}, {1, 8}, {5, 3}, {4, 3}, {3, 0}} {
		c := must(g.Take(t.Context(), question{key: "ann", hits: step.hits}))
		if c.Allowed != (step.hits < 4 || step.hits == 5) || c.Limits.Policies[0].Remaining != step.left {
			t.Errorf("%d hits: got allowed %v and %+v, want %d left", step.hits, c.Allowed, c.Limits, step.left)
		}
	}
	var bad *fault.Fault
	if _, err := g.Take(t.Context(), question{key: "ann", hits: -1}); !errors.As(err, &bad) || guard.ProblemOf(err).Status != 400 {
		t.Errorf("got %v, want a fault of the caller", err)
	}
}

// byClient decides as a client of a service does, which does not have the rules.
type byClient struct{ guard.Decider }

func (c byClient) Do(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	err := c.Decider.Do(ctx, verb, r, d)
	d.Rules = nil
	return err
}

// What a denial says: the outcome, the rule, the status and the body.
func TestAnswers(t *testing.T) {
	t.Parallel()
	e := guardtest.Engine(t, []rule.Rule{
		{Name: "posts", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute), OnOutage: rule.OutageDeny},
		{Name: "logins", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("login")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute), Then: "captcha", OnOutage: rule.OutageDeny},
		{Name: "removed", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("upload")}}, Then: rule.Deny},
		{Name: "night", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("export")}}, Then: "closed"},
	}, map[string]rule.Outcome{
		"captcha": {Status: 403, Body: []byte(`{"need_captcha":true}`)},
		"closed":  {Status: 503},
	})
	s := weirtest.NewStore()
	s.Fail(errors.New("down"))
	down := must(weir.NewEngine(e.Rules(), weir.WithStore(s)))
	t.Cleanup(func() { down.Close() })
	rules, client, outage := must(byRules(e)), must(byRules(byClient{e})), must(byRules(down))
	keys := must(byKey(guardtest.Limiter(t, weir.Sliding(1, time.Minute))))
	full := must(byKey(guardtest.Limiter(t, weir.Sliding(1, time.Minute), weir.WithMaxKeys(1), weir.WithOutage(rule.OutageDeny))))
	full.End(must(full.Take(t.Context(), question{key: "other"})))
	for _, tc := range []struct {
		name          string
		guard         *guard.Middleware[question]
		action        string // of a rule
		outcome       string
		rule          string
		status        int
		mediaType     string
		body, problem string
	}{
		{"a limiter", keys, "", "deny", "posts", 429, "application/problem+json", `"violated-policies":["posts"]`, "https://iana.org/assignments/http-problem-types#quota-exceeded"},
		{"a rule", rules, "post", "deny", "posts", 429, "application/problem+json", `"violated-policies":["posts"]`, "https://iana.org/assignments/http-problem-types#quota-exceeded"},
		{"an outcome with a body", rules, "login", "captcha", "logins", 403, "application/json", `{"need_captcha":true}`, ""},
		{"an outcome without one", rules, "export", "closed", "night", 503, "application/problem+json", `"status":503`, ""},
		{"a verdict", rules, "upload", "deny", "removed", 429, "application/problem+json", `"status":429`, ""},
		{"a client", client, "login", "captcha", "logins", 429, "application/problem+json", `"violated-policies":["logins"]`, ""},
		{"a rule in an outage", outage, "post", "deny", "posts", 503, "application/problem+json", `temporary-reduced-capacity`, ""},
		{"an outcome in an outage", outage, "login", "captcha", "logins", 403, "application/json", `{"need_captcha":true}`, ""},
		{"an outage", full, "", "deny", "posts", 503, "application/problem+json", `temporary-reduced-capacity`, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ask := question{key: "ann"}
			if tc.action != "" {
				ask = question{attributes: weir.Attributes("action", tc.action, "user", "ann")}
			}
			tc.guard.End(must(tc.guard.Take(t.Context(), ask)))
			c := must(tc.guard.Take(t.Context(), ask))
			if c.Allowed || c.Rule() != tc.rule || tc.action != "" && c.Decision().Outcome != tc.outcome {
				t.Errorf("got allowed %v by %s, %+v", c.Allowed, c.Rule(), c.Decision())
			}
			status, mediaType, body := c.Answer()
			if status != tc.status || mediaType != tc.mediaType || !strings.Contains(string(body), tc.body) {
				t.Errorf("got %d %s %s, want %d %s with %s", status, mediaType, body, tc.status, tc.mediaType, tc.body)
			}
			if tc.problem != "" && c.Problem().Type != tc.problem {
				t.Errorf("got a problem %+v, want the type %s", c.Problem(), tc.problem)
			}
		})
	}
}

// The zero Call denies, and has a decision of no engine.
func TestZeroCall(t *testing.T) {
	t.Parallel()
	var c guard.Call
	if c.Allowed || c.Decision() != nil || c.Rule() != "" {
		t.Errorf("got %+v, by %q", c, c.Rule())
	}
	c.SetAttributes(weir.Attributes("tokens", "1")...)
	c.Detach()()
}

// A fault of the caller is shown to the caller. What went wrong in the service is not.
func TestProblemOf(t *testing.T) {
	t.Parallel()
	m := guardtest.Limiter(t, weir.Sliding(1, time.Minute))
	g := must(byKey(m))
	m.Close()
	_, closed := g.Take(t.Context(), question{key: "ann"})
	for _, tc := range []struct {
		err    error
		status int
		shown  bool
	}{
		{guard.ErrNoKey, 400, true},
		{closed, 503, false},
	} {
		p := guard.ProblemOf(tc.err)
		if p.Status != tc.status || strings.Contains(p.Detail, tc.err.Error()) != tc.shown {
			t.Errorf("%v: got %d and %+v, want %d", tc.err, p.Status, p, tc.status)
		}
	}
}

func TestAddressKey(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1:443":              "192.0.2.1",
		"[::ffff:192.0.2.1]:443":     "192.0.2.1",
		"[2001:db8:0:1:2:3:4:5]:443": "2001:db8:0:1::/64",
		"@":                          "",
		"":                           "",
	} {
		if got := guard.AddressKey(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}

// An address counts by its group, and a header only if a trusted proxy has sent it.
func TestPerIP(t *testing.T) {
	t.Parallel()
	type call struct {
		peer      string
		forwarded []string
	}
	address := func(c call) (string, []string) { return c.peer, c.forwarded }
	forged := []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}
	for name, tc := range map[string]struct {
		trusted       []string
		first, second call
		same          bool // client
	}{
		"ports":                {nil, call{"192.0.2.1:1", nil}, call{"192.0.2.1:2", nil}, true},
		"addresses":            {nil, call{"192.0.2.1:1", nil}, call{"192.0.2.2:1", nil}, false},
		"one network of IPv6":  {nil, call{"[2001:db8::1]:1", nil}, call{"[2001:db8::ffff:1]:1", nil}, true},
		"two networks of IPv6": {nil, call{"[2001:db8::1]:1", nil}, call{"[2001:db8:0:1::1]:1", nil}, false},
		"no proxies":           {nil, call{"192.0.2.1:1", forged[:1]}, call{"192.0.2.1:1", forged[1:2]}, true},
		"not a proxy":          {[]string{"10.0.0.0/8"}, call{"192.0.2.1:1", forged[:1]}, call{"192.0.2.1:1", forged[1:2]}, true},
		"a proxy":              {[]string{"10.0.0.0/8"}, call{"10.0.0.1:1", forged[:1]}, call{"10.0.0.1:1", forged[1:2]}, false},
		"forged before":        {[]string{"10.0.0.0/8"}, call{"10.0.0.1:1", []string{"203.0.113.1, 192.0.2.7"}}, call{"10.0.0.2:1", []string{"203.0.113.2", "192.0.2.7"}}, true},
		"behind a proxy, IPv6": {[]string{"10.0.0.0/8"}, call{"10.0.0.1:1", []string{"2001:db8::1"}}, call{"10.0.0.1:1", []string{"2001:db8::2"}}, true},
	} {
		m, err := guard.PerIP(1, time.Minute, tc.trusted, address)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []call{tc.first, tc.second} {
			got, err := m.Take(t.Context(), c)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := i == 0 || !tc.same; got.Allowed != want {
				t.Errorf("%s, call %d: got allowed %v, want %v", name, i+1, got.Allowed, want)
			}
			m.End(got)
		}
	}
	m, err := guard.PerIP(1, time.Minute, nil, address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Take(t.Context(), call{"@", forged}); !errors.Is(err, guard.ErrNoKey) {
		t.Errorf("got %v for a connection without an address, want ErrNoKey", err)
	}
	for want, err := range map[string]error{
		"quota":   func() error { _, err := guard.PerIP(-1, time.Minute, nil, address); return err }(),
		"window":  func() error { _, err := guard.PerIP(1, -time.Minute, nil, address); return err }(),
		"trusted": func() error { _, err := guard.PerIP(1, time.Minute, []string{"proxy"}, address); return err }(),
		"address": func() error { _, err := guard.PerIP[call](1, time.Minute, nil, nil); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one about the %s", err, want)
		}
	}
}
