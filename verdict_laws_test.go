package weir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// FuzzVerdicts compares the engine with a slow reference model on random rules, of which many
// decide at once, and random requests.
func FuzzVerdicts(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		t.Parallel()
		r := rand.New(rand.NewPCG(seed, 6))
		rules := make([]rule.Rule, 1+r.IntN(8))
		for i := range rules {
			rules[i] = randomRule(r, i)
		}
		set, err := rule.New(rules, map[string]rule.Outcome{"member": {Allow: true}, "captcha": {}})
		if err != nil {
			t.Fatal(err)
		}
		e := engineOf(t, set)
		m := model{rules: rules, used: make([]int64, len(rules))}
		for range 60 {
			verb := []store.Verb{store.Take, store.Take, store.Check, store.Record, store.Refund}[r.IntN(5)]
			req := weir.Request{Attributes: weir.Attributes("user", "ann", "a", fmt.Sprint(r.IntN(2)), "b", fmt.Sprint(r.IntN(2)))}
			if verb == store.Refund && r.IntN(2) == 0 && slices.ContainsFunc(rules, hasFeedback) {
				req.Feedback = "solved"
			}
			var d weir.Decision
			if err := e.Do(t.Context(), verb, &req, &d); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%v %s %q %q", d.Allowed, d.Outcome, d.Rule, d.Verdicts)
			for _, u := range d.Usages {
				got += fmt.Sprintf(" %s:%d", u.Rule, u.Used)
			}
			if want := m.do(verb, &req); got != want {
				t.Fatalf("%v %v: got %s, want %s\nof %+v", verb, req, got, want, rules)
			}
		}
	})
}

// hasFeedback reports whether a rule has a feedback: a refund for one that no rule has is an error.
func hasFeedback(r rule.Rule) bool { return len(r.Feedback) > 0 }

func randomRule(r *rand.Rand, i int) rule.Rule {
	ru := rule.Rule{Name: fmt.Sprint("r", i)}
	if r.IntN(2) == 0 {
		ru.When = []rule.Condition{{Attribute: []string{"a", "b"}[r.IntN(2)], Test: rule.Equal("1")}}
	}
	if r.IntN(5) < 2 {
		ru.Then = []string{rule.Allow, rule.Deny, "member", "captcha"}[r.IntN(4)]
		ru.Mode, ru.CountRest = rule.Mode(r.IntN(3)), r.IntN(3) > 0
		return ru
	}
	ru.Per, ru.Window = []string{"user"}, window.Fixed(time.Hour)
	if r.IntN(4) > 0 {
		ru.Quota = &rule.Quota{Value: int64(r.IntN(5))}
		ru.CountDenied = r.IntN(4) == 0
		ru.Then = []string{"", "captcha"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			ru.Feedback = map[string]int64{"solved": int64(1 + r.IntN(3))}
		}
	}
	return ru
}

// model decides from the definition.
type model struct {
	rules []rule.Rule
	used  []int64
}

func (m *model) do(verb store.Verb, req *weir.Request) string {
	var before, behind, verdicts []int
	for i := range m.rules {
		switch r := &m.rules[i]; {
		case r.Mode == rule.Off || !m.matches(r, req):
			continue
		case r.Kind() == rule.KindVerdict && r.Mode == rule.Shadow:
			continue
		case r.Kind() == rule.KindVerdict:
			verdicts = append(verdicts, i)
		case verdicts == nil:
			before = append(before, i)
		default:
			behind = append(behind, i)
		}
		if r := &m.rules[i]; r.Kind() == rule.KindVerdict && !r.CountRest {
			break
		}
	}
	outcome, by := rule.Allow, ""
	if verb == store.Take || verb == store.Check {
		over := slices.IndexFunc(before, func(i int) bool {
			return m.rules[i].Quota != nil && m.used[i] >= m.rules[i].Quota.Value
		})
		switch {
		case over >= 0:
			outcome, by = m.rules[before[over]].Then, m.rules[before[over]].Name
		case verdicts != nil:
			outcome, by = m.rules[verdicts[0]].Then, m.rules[verdicts[0]].Name
		}
		if outcome == "" {
			outcome = rule.Deny
		}
	}
	allowed := outcome == rule.Allow || outcome == "member"
	for _, i := range before {
		always := m.rules[i].Quota == nil || m.rules[i].CountDenied
		m.count(verb, req, i, allowed || always)
	}
	for _, i := range behind {
		m.count(verb, req, i, allowed)
	}
	names := make([]string, len(verdicts))
	for n, i := range verdicts {
		names[n] = m.rules[i].Name
	}
	text := fmt.Sprintf("%v %s %q %q", allowed, outcome, by, names)
	for _, i := range slices.Concat(before, behind) {
		text += fmt.Sprintf(" %s:%d", m.rules[i].Name, m.used[i])
	}
	return text
}

func (m *model) matches(r *rule.Rule, req *weir.Request) bool {
	for _, c := range r.When {
		for _, a := range req.Attributes {
			if a.Name == c.Attribute && !c.Test.Holds(a.Value) {
				return false
			}
		}
	}
	return true
}

// count applies verb to rule i; taken reports whether a take counts in it.
func (m *model) count(verb store.Verb, req *weir.Request, i int, taken bool) {
	switch {
	case verb == store.Record || verb == store.Take && taken:
		m.used[i]++
	case verb == store.Refund && req.Feedback != "":
		m.used[i] = max(0, m.used[i]-m.rules[i].Feedback[req.Feedback])
	case verb == store.Refund:
		m.used[i] = max(0, m.used[i]-1)
	}
}
