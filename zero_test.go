package weir_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// What was not made by its constructor answers with an error that names the
// constructor, and never panics.
func TestZeroValuesAnswerWithAnError(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := weir.Decision{Allowed: true} // of an earlier call
	set := compile(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)}})
	items := []weir.Item{{}}
	for _, e := range []*weir.Engine{nil, {}} {
		_, take := e.Take(ctx, weir.Request{})
		_, usage := e.Usage(ctx, "posts", nil)
		_, _, explain := e.Explain(ctx, weir.Request{})
		e.DoAll(ctx, items)
		for name, err := range map[string]error{
			"take": take, "usage": usage, "explain": explain, "batch": items[0].Err, "rules": e.SetRules(set),
			"do": e.Do(ctx, store.Check, &weir.Request{}, &d), "forget": e.Forget(ctx, "posts", nil),
		} {
			names(t, "engine, "+name, err, "weir.NewEngine")
		}
		if d.Allowed {
			t.Error("engine: do has left the decision of an earlier call")
		}
		if e.Rules() != nil || e.Close() != nil {
			t.Error("engine: want no rules, and closing to be safe")
		}
	}
	for _, m := range []*weir.Limiter{nil, {}} {
		_, allow := m.Allow(ctx, "k")
		_, check := m.Check(ctx, "k")
		_, _, upTo := m.AllowUpTo(ctx, "k", 3)
		for name, err := range map[string]error{
			"allow": allow, "check": check, "forget": m.Forget(ctx, "k"), "wait": m.Wait(ctx, "k"), "up to": upTo,
		} {
			names(t, "limiter, "+name, err, "weir.NewLimiter")
		}
		if err := m.Close(); err != nil {
			t.Errorf("closing: got %v", err)
		}
		if got := m.Limit(); got != (weir.Limit{}) {
			t.Errorf("limit: got %v, want none", got)
		}
	}
	for _, c := range []*weir.Counter{nil, {}} {
		_, add := c.Add(ctx, "k", 1)
		_, count := c.Count(ctx, "k", time.Hour)
		_, history := c.History(ctx, "k")
		for name, err := range map[string]error{
			"add": add, "count": count, "history": history, "forget": c.Forget(ctx, "k"),
		} {
			names(t, "counter, "+name, err, "weir.NewCounter")
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing: got %v", err)
		}
	}
}

func names(t *testing.T, what string, err error, constructor string) {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) || !strings.Contains(err.Error(), constructor) {
		t.Errorf("%s: got %v, want a fault that names %s", what, err, constructor)
	}
}

// Bad input names its field, and what was expected.
func TestFaultsNameTheirField(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	hits, members := weir.MustLimiter(weir.Sliding(5, time.Hour)), weir.MustLimiter(weir.Members(5, time.Hour))
	defer hits.Close()
	defer members.Close()
	limiter := func(l weir.Limit, options ...weir.LimiterOption) error {
		_, err := weir.NewLimiter(l, options...)
		return err
	}
	engine := func(set *rule.Set, options ...weir.Option) error {
		_, err := weir.NewEngine(set, options...)
		return err
	}
	result := func(_ weir.Result, err error) error { return err }
	for field, err := range map[string]error{
		"quota":         limiter(weir.Sliding(-2, time.Hour)),
		"window.length": limiter(weir.Sliding(1, 0)),
		"max keys":      limiter(weir.Sliding(1, time.Hour), weir.WithMaxKeys(0)),
		"outage":        limiter(weir.Sliding(1, time.Hour), weir.WithOutage(9)),
		"store":         limiter(weir.Sliding(1, time.Hour), weir.WithStore(nil)),
		"local store":   engine(nil, weir.WithLocal(nil, 1)),
		"rules":         engine(nil),
		"hits":          result(hits.AllowN(ctx, "k", 0)),
		"member":        result(members.Record(ctx, "k", 1)),
	} {
		var f *fault.Fault
		if !errors.As(err, &f) || f.Path != field {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
	// All faults are there at once, and options that do not go together are one.
	counts := memstore.New()
	defer counts.Close()
	both := limiter(weir.Sliding(-2, 0), weir.WithStore(counts), weir.WithLocal(counts, 0))
	if got := len(fault.Of(both)); got != 4 {
		t.Errorf("got %d faults, want quota, window.length, name and nodes: %v", got, both)
	}
	shared, local := memstore.New(), weir.WithLocal(counts, 1)
	defer shared.Close()
	first := weir.MustLimiter(weir.Sliding(1, time.Hour), weir.WithName("r"), weir.WithStore(shared), local)
	defer first.Close()
	second := struct{ store.Store }{shared}
	for what, err := range map[string]error{
		"local alone":         engine(nil, weir.WithLocal(counts, 1)),
		"local and the store": engine(nil, weir.WithStore(counts), weir.WithLocal(counts, 1)),
		"local of two stores": engine(nil, weir.WithStore(second), local),
		"and of limiters":     limiter(weir.Sliding(1, time.Hour), weir.WithName("r"), weir.WithStore(second), local),
	} {
		if list := fault.Of(err); len(list) != 1 || list[0].Path != "local store" {
			t.Errorf("%s: got %v, want a fault of the local store", what, err)
		}
	}
	// A counter is no limit of -1.
	if err := limiter(weir.Sliding(window.Unlimited, time.Hour)); err == nil || !strings.Contains(err.Error(), "NewCounter") {
		t.Errorf("sliding -1: got %v, want an error that points to NewCounter", err)
	}
}

// TestZeroSet: an engine refuses a set that no constructor made, which would allow
// everything, and keeps its rules.
func TestZeroSet(t *testing.T) {
	t.Parallel()
	for _, set := range []*rule.Set{nil, {}} {
		_, err := weir.NewEngine(set)
		names(t, "new", err, "rule.New")
		e := engineOf(t, compile(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)}}))
		names(t, "set", e.SetRules(set), "rule.New")
		if e.Rules().Len() != 1 {
			t.Errorf("got %d rules, want the old one", e.Rules().Len())
		}
	}
}
