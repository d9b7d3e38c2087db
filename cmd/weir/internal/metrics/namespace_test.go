package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// wantLines checks that each line of want is in got.
func wantLines(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, line := range want {
		if !got[line] {
			t.Errorf("got no line %s", line)
		}
	}
}

// Namespaces past the bound are counted together, and so are their rules. The one
// called default always has its own label.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Namespaces: 2})
	for i, name := range []string{"a", "b", "c", "d", "default"} {
		n := m.Namespace(name)
		n.Loaded(i+1, time.Unix(int64(i), 0))
		n.Decided(t.Context(), store.Take, denied(), 0)
		n.Failed(t.Context(), store.Take, nil)
	}
	m.Namespace("d").Decided(t.Context(), store.Take, &weir.Decision{Outcome: "captcha", Rule: "x", Unmatched: true}, 0)
	m.Namespace("d").Refused()
	m.Watch(func() metrics.StoreStats {
		var s metrics.StoreStats
		for i, name := range []string{"a", "c", "c", "d"} {
			s.Rules = append(s.Rules, metrics.RuleStats{Namespace: name, Rule: fmt.Sprint("r", i), Keys: 10, Holds: -1, Banned: int64(i)})
		}
		return s
	})
	got := read(m)
	wantLines(t, got,
		`weir_decisions_total{namespace="a",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_decisions_total{namespace="b",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_decisions_total{namespace="default",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_decisions_total{namespace="_other",outcome="deny",rule="_other",verb="take"} 2`,
		`weir_decisions_total{namespace="_other",outcome="_other",rule="_other",verb="take"} 1`,
		`weir_rule_over_total{mode="enforce",namespace="_other",rule="_other"} 2`,
		`weir_requests_failed_total{namespace="_other",verb="take"} 2`,
		`weir_requests_unmatched_total{namespace="_other",verb="take"} 1`,
		`weir_decisions_degraded_total{namespace="_other"} 2`,
		`weir_rules{namespace="a"} 1`, `weir_rules{namespace="_other"} 7`, `weir_rules{namespace="default"} 5`,
		`weir_rules_reload_success{namespace="a"} 1`, `weir_rules_reload_success{namespace="_other"} 0`,
		`weir_rules_reload_total{namespace="_other",result="success"} 2`, `weir_rules_reload_total{namespace="_other",result="failure"} 1`,
		`weir_store_keys{namespace="a",rule="r0"} 10`, `weir_store_keys{namespace="_other",rule="_other"} 30`,
		`weir_store_banned_keys{namespace="_other",rule="_other"} 6`,
	)
	for line := range got {
		if strings.HasPrefix(line, "weir_store_holds{") {
			t.Errorf("got %s, want nothing for rules that hold nothing", line)
		}
		for _, name := range []string{`"c"`, `"d"`} {
			if strings.Contains(line, "namespace="+name) {
				t.Errorf("got %s, want no label past the bound", line)
			}
		}
	}
}

// The metrics of a namespace leave with it, and its label is free again.
func TestDrop(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Namespaces: 1})
	a := m.Namespace("a")
	a.Decided(t.Context(), store.Take, denied(), 0)
	a.Loaded(1, time.Unix(0, 0))
	c := m.Namespace("c")
	c.Loaded(3, time.Unix(0, 0))
	c.Drop()
	a.Drop()
	a.Drop()
	m.Namespace("b").Decided(t.Context(), store.Take, denied(), 0)
	m.Namespace("d").Refused()
	got := read(m)
	wantLines(t, got,
		`weir_decisions_total{namespace="b",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_rules{namespace="_other"} 0`, `weir_rules_reload_success{namespace="_other"} 0`,
	)
	for line := range got {
		if strings.Contains(line, `namespace="a"`) {
			t.Errorf("got %s, want nothing of a namespace that is gone", line)
		}
	}
}

func TestNearLimit(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{NearLimit: 0.5})
	n := m.Namespace("default")
	rules, err := rule.New([]rule.Rule{{Name: "past", Quota: &rule.Quota{Value: 4}, Window: window.Sliding(time.Hour)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []weir.Usage{
		{Rule: "below", Result: window.Result{Allowed: true, Quota: 5, Used: 2}},
		{Rule: "at", Result: window.Result{Allowed: true, Quota: 4, Used: 2}},
		{Rule: "full", Shadow: true, Result: window.Result{Allowed: true, Quota: 4, Used: 4}},
		{Rule: "one", Result: window.Result{Allowed: true, Quota: 1, Used: 1}}, // nothing is near it but the limit itself
		{Rule: "over", Result: window.Result{Quota: 4, Used: 4}},
		{Rule: "past", Hits: 1, Result: window.Result{Allowed: true, Quota: 4, Used: 4, Before: 4}}, // behind a verdict
		{Rule: "endless", Result: window.Result{Allowed: true, Quota: window.Unlimited, Used: window.MaxHits}},
		{Rule: "counter", Kind: rule.KindCounter, Result: window.Result{Allowed: true, Quota: 4, Used: 4}},
	} {
		for _, verb := range []store.Verb{store.Take, store.Record, store.Check, store.Refund} {
			n.Decided(t.Context(), verb, &weir.Decision{Usages: []weir.Usage{u}, Rules: rules}, 0)
		}
	}
	got := read(m)
	wantLines(t, got,
		`weir_rule_near_limit_total{mode="enforce",namespace="default",rule="at"} 2`,
		`weir_rule_near_limit_total{mode="shadow",namespace="default",rule="full"} 2`,
	)
	lines := 0
	for line := range got {
		if strings.HasPrefix(line, "weir_rule_near_limit_total{") {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("got %d rules near their limit, want two", lines)
	}
}
