package rule_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// FuzzMatch compares the index with its slow reference model, which tries every rule, and Why
// to both, on random rules and requests.
func FuzzMatch(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		t.Parallel()
		r := rand.New(rand.NewPCG(seed, 1))
		rules := make([]rule.Rule, r.IntN(40))
		for i := range rules {
			rules[i] = randomRule(r, i)
		}
		set, err := rule.New(rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		prior := []int{-7, 3} // what dst holds already stays
		for range 30 {
			request := map[string]string{}
			values := make([]string, len(set.Attributes()))
			for i, name := range set.Attributes() {
				values[i] = word(r)
				request[name] = values[i]
			}
			want := slices.Concat(prior, matchSlowly(rules, request))
			if got := set.Compiled().Match(values, slices.Clone(prior), false); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v for %v", got, want, request)
			}
			for _, i := range want[len(prior):] {
				if n, most := len(set.Compiled().ReadableKey(i, values)), set.Compiled().ReadableKeyLen(i, values); n != most && n != most-1 {
					t.Fatalf("rule %d: got a key of %d bytes, want %d or one less", i, n, most)
				}
			}
			for i := range rules {
				for j := range rules {
					if c := set.Compiled(); c.SameKey(i, j) && !bytes.Equal(c.AppendKey(nil, i, values), c.AppendKey(nil, j, values)) {
						t.Fatalf("rules %d and %d: got different keys for %v, want the same", i, j, request)
					}
				}
				got, reasons := set.Compiled().Why(i, values)
				if want := holds(&rules[i], request); got != want || got != (len(reasons) == 0) {
					t.Fatalf("rule %d: got %v, %v, want %v for %v", i, got, reasons, want, request)
				}
				limit, err := set.Compiled().LimitOf(i, values, nil)
				if got && rules[i].Kind() != rule.KindVerdict && limit == nil && err == nil {
					t.Fatalf("rule %d: got no limit for %v", i, request)
				}
			}
		}
	})
}

// matchSlowly returns what Match should return, from its definition.
func matchSlowly(rules []rule.Rule, request map[string]string) (found []int) {
	for i := range rules {
		r := &rules[i]
		if !holds(r, request) {
			continue
		}
		found = append(found, i)
		if r.Kind() == rule.KindVerdict && r.Mode == rule.Enforce && !r.CountRest {
			break
		}
	}
	return found
}

func holds(r *rule.Rule, request map[string]string) bool {
	value := func(name string) string {
		for _, c := range r.When {
			if c.Attribute == name && c.Trim {
				return strings.TrimSpace(request[name])
			}
		}
		return request[name]
	}
	if r.Mode == rule.Off {
		return false
	}
	for _, c := range r.When {
		v := request[c.Attribute]
		if c.Trim {
			v = strings.TrimSpace(v)
		}
		if !c.Test.Holds(v) {
			return false
		}
	}
	for _, name := range r.Per {
		if value(name) == "" {
			return false
		}
	}
	if r.Of != "" && value(r.Of) == "" {
		return false
	}
	if r.Quota != nil && r.Quota.Of != "" && r.Quota.Else == nil {
		return value(r.Quota.Of) != ""
	}
	if r.Quota != nil && r.Quota.By != "" && r.Quota.Else == nil {
		_, ok := r.Quota.Cases[value(r.Quota.By)]
		return ok
	}
	return true
}

var attributes = []string{"a", "b", "c", "d", "e"}

func word(r *rand.Rand) string { return []string{"", "", "x", "y", "z", " x", " "}[r.IntN(7)] }

func randomRule(r *rand.Rand, i int) rule.Rule {
	attribute := func() string { return attributes[r.IntN(len(attributes))] }
	ru := rule.Rule{Name: fmt.Sprint("r", i), Window: window.Fixed(time.Hour)}
	for range r.IntN(4) {
		ru.When = append(ru.When, rule.Condition{Attribute: attribute(), Test: randomTest(r), Trim: r.IntN(4) == 0})
	}
	switch r.IntN(8) {
	case 0, 1:
		ru.Then, ru.Window = rule.Deny, window.Window{}
		ru.Mode, ru.CountRest = rule.Mode(r.IntN(3)), r.IntN(2) > 0
		return ru
	case 2:
		ru.Measure, ru.Of = window.Sum, attribute()
	case 3:
		ru.Quota = &rule.Quota{By: attribute(), Cases: map[string]int64{"x": 1, "z": 3}}
		if r.IntN(2) == 0 {
			ru.Quota = &rule.Quota{Of: attribute(), Most: 5}
		}
		if r.IntN(2) == 0 {
			ru.Quota.Else = new(int64)
		}
	}
	if r.IntN(2) == 0 {
		ru.Per = []string{attribute()}
	}
	if r.IntN(6) == 0 {
		ru.Mode = rule.Off
	}
	return ru
}

func randomTest(r *rand.Rand) rule.Test {
	switch r.IntN(7) {
	case 0:
		return rule.Present()
	case 1:
		return rule.Not(rule.Equal(word(r)))
	case 2:
		return rule.All(rule.Equal(word(r), word(r)), rule.Equal(word(r), "z", "y"))
	case 3:
		return rule.Equal(word(r), word(r), word(r))
	default:
		return rule.Equal(word(r))
	}
}

// TestTried: of 10,000 rules a request tries only those that are asked for by
// its own value, though all of them share another one, and none after a rule
// that decides.
func TestTried(t *testing.T) {
	t.Parallel()
	tried := 0
	count := rule.Condition{Attribute: "action", Test: counting{&tried}} // evaluated first
	rules := []rule.Rule{{Name: "admins", When: []rule.Condition{{Attribute: "user", Test: rule.Prefix("admin")}}, Then: rule.Allow}}
	for i := range 10_000 {
		rules = append(rules, rule.Rule{
			Name: fmt.Sprint("r", i),
			When: []rule.Condition{
				count,
				{Attribute: "action", Test: rule.Equal("post")},
				{Attribute: "path", Test: rule.All(rule.Present(), rule.Equal(fmt.Sprint("/", i/2), "/none"))},
				{Attribute: "path", Test: rule.Equal(fmt.Sprint("/", i/2))},
			},
			Window: window.Fixed(time.Hour),
		})
	}
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		user, path string
		want       int
	}{{"ann", "/77", 2}, {"ann", "/none", 0}, {"admin7", "/77", 0}} {
		tried = 0
		set.Compiled().Match(vector(set, map[string]string{"action": "post", "user": tt.user, "path": tt.path}), nil, false)
		if tried != tt.want {
			t.Errorf("%s %s: got %d rules tried, want %d", tt.user, tt.path, tried, tt.want)
		}
	}
}

// counting is a test that always holds, and counts its calls.
type counting struct{ n *int }

func (c counting) Holds(string) bool { *c.n++; return true }
func (c counting) String() string    { return "is counted" }

// FuzzKey: requests have one key exactly when they agree on every attribute
// of `per`, and so do loose parts, however many.
func FuzzKey(f *testing.F) {
	f.Add("ann", "x", "ann", "x")
	f.Add("ann", "", "", "ann")
	f.Add("\x01a", "b", "", "\x01a\x01b")
	f.Add("a", strings.Repeat("b", 300), "a", strings.Repeat("b", 299))
	set, err := rule.New([]rule.Rule{{Name: "r", Per: []string{"a", "b"}, Window: window.Fixed(time.Hour)}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		t.Parallel()
		same := a == c && b == d
		x, y := set.Compiled().AppendKey(nil, 0, []string{a, b}), set.Compiled().AppendKey([]byte("kept"), 0, []string{c, d})
		if got := bytes.Equal(x, y[len("kept"):]); got != same {
			t.Errorf("got equal keys %v, want %v", got, same)
		}
		if !bytes.Equal(x, ruleset.AppendKey(nil, a, b)) {
			t.Errorf("got another key of the same parts: %q", x)
		}
		for _, parts := range [][]string{nil, {a}, {b}, {a, b, c}, {a, b, ""}, {a + b}, {string(x)}} {
			if bytes.Equal(x, ruleset.AppendKey(nil, parts...)) {
				t.Errorf("got the key of %q and %q for %q", a, b, parts)
			}
		}
	})
}

// TestCopied: what New was given may change later, the set does not.
func TestCopied(t *testing.T) {
	t.Parallel()
	other := int64(5)
	body := []byte(`{}`)
	outcomes := map[string]rule.Outcome{"captcha": {Body: body}}
	rules := []rule.Rule{{
		Name:     "r",
		When:     []rule.Condition{{Attribute: "a", Test: rule.Present()}},
		Per:      []string{"a"},
		Quota:    &rule.Quota{By: "a", Cases: map[string]int64{"x": 1}, Else: &other},
		Window:   window.Sliding(time.Hour),
		Feedback: map[string]int64{"solved": 2},
	}}
	set, err := rule.New(rules, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	rules[0].When[0].Attribute, rules[0].Per[0], rules[0].Quota.Cases["x"], other, body[0] = "b", "b", 9, 9, 'x'
	rules[0].Feedback["solved"] = 9
	delete(outcomes, "captcha")
	r := set.Rule(0)
	if r.When[0].Attribute != "a" || r.Per[0] != "a" || r.Quota.Cases["x"] != 1 || *r.Quota.Else != 5 || r.Feedback["solved"] != 2 {
		t.Errorf("got %+v, want the rule as it was given", r)
	}
	if o, ok := set.Outcome("captcha"); !ok || o.Status != 429 || string(o.Body) != `{}` {
		t.Errorf("got %d %s %v, want 429 {} true", o.Status, o.Body, ok)
	}
}

// TestLookups: rules, outcomes and attributes are found by name.
func TestLookups(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{
		{Name: "one", Per: []string{"user"}, Window: window.Fixed(time.Hour)},
		{Name: "two", Per: []string{"ip"}, Window: window.Fixed(time.Hour)},
		{Name: "members", Then: "member"},
		{Name: "staff", Then: rule.Allow},
		{Name: "others", Then: rule.Deny},
	}, map[string]rule.Outcome{"member": {Allow: true}})
	if err != nil {
		t.Fatal(err)
	}
	if i, ok := set.Find("two"); i != 1 || !ok || set.Len() != 5 {
		t.Errorf("got %d %v of %d, want 1 true of 5", i, ok, set.Len())
	}
	if _, ok := set.Find("three"); ok {
		t.Error("got a rule that is not there")
	}
	if at, ok := set.Compiled().Attribute("user"); at != 1 || !ok || set.Attributes()[at] != "user" {
		t.Errorf("got %d %v in %v, want 1 true", at, ok, set.Attributes())
	}
	if _, ok := set.Compiled().Attribute("agent"); ok {
		t.Error("got an attribute that no rule uses")
	}
	for name, status := range map[string]int{rule.Allow: 200, rule.Deny: 429, "member": 200, "captcha": 0} {
		if o, ok := set.Outcome(name); o.Status != status || ok != (status > 0) {
			t.Errorf("%s: got %d %v, want %d", name, o.Status, ok, status)
		}
	}
	for i, want := range []bool{false, false, true, true, false} {
		if got := set.Compiled().Allows(i); got != want {
			t.Errorf("%s: got allows %v, want %v", set.Rule(i).Name, got, want)
		}
	}
	ann, _ := set.Compiled().LimitOf(0, []string{"", "ann"}, nil)
	bob, _ := set.Compiled().LimitOf(0, []string{"", "bob"}, nil)
	if ann == nil || ann != bob {
		t.Error("got two pointers to one limit, want one")
	}
}

// FuzzAddress: no text panics, neither as a pattern nor as a value, and a
// pattern that is one address holds for itself.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "10.0.0.1-10.0.0.9", "10.*.0.*", "::ffff:1.2.3.4/99", "fe80::1%a/64", "-", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		t.Parallel()
		test, err := rule.Address(s)
		if err == nil && !strings.ContainsAny(s, "/-*%") && !test.Holds(s) {
			t.Errorf("%q: got false for itself", s)
		}
		if l, err := rule.In("l", []string{s}); err == nil && !strings.ContainsAny(s, "/-*%") && !l.Holds(s) {
			t.Errorf("%q: got a list without it", s)
		}
	})
}

// FuzzWithin checks that the bounds of a number contain it, and that other text is in no range.
func FuzzWithin(f *testing.F) {
	for _, seed := range []string{"5", "-0", "1e3", "1e999", "NaN", " 5", "0x1p4", "1_0", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		t.Parallel()
		zero := 0.0
		number := rule.Within(rule.Range{}).Holds(s)
		above := rule.Within(rule.Range{Above: &zero}).Holds(s)
		below := rule.Within(rule.Range{Below: &zero}).Holds(s)
		at := rule.Within(rule.Range{From: &zero, To: &zero}).Holds(s)
		if one := above != below != at && !(above && below && at); one != number {
			t.Errorf("%q: got above %v, below %v, at %v, want one of them exactly for a number: %v", s, above, below, at, number)
		}
	})
}
