package weir_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// exactLimit admits 100 hits in 5 µs, so that a log of up to a hundred instants turns
// over while it is measured.
var exactLimit = weir.Sliding(100, 5*time.Microsecond)

// BenchmarkEngine measures requests that match one rule, three rules, and one of
// many, beside a Limiter with the same limit and beside the floor: a program that
// does only what one rule needs.
func BenchmarkEngine(b *testing.B) {
	ctx := context.Background()
	req := weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")}
	b.Run("Limiter", func(b *testing.B) {
		m := weir.MustLimiter(exactLimit)
		b.ReportAllocs()
		for b.Loop() {
			if r, err := m.Allow(ctx, "42"); err != nil || !r.Allowed {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		f := newFloor()
		var d weir.Decision
		b.ReportAllocs()
		for b.Loop() {
			if err := f.take(ctx, &req, &d); err != nil || !d.Allowed {
				b.Fatal(d, err)
			}
		}
	})
	for _, row := range []struct {
		name    string
		rules   []rule.Rule
		options []weir.Option
	}{
		{"rules=1", postRules(1, 0), nil},
		{"rules=3", postRules(3, 0), nil},
		{"rules=8", postRules(8, 0), nil},
		{"rules=1 of 10000", postRules(1, 9999), nil},
		{"rules=1/observed", postRules(1, 0), []weir.Option{weir.WithObserver(silent{})}},
	} {
		b.Run(row.name, func(b *testing.B) {
			e := engine(b, row.rules, row.options...)
			var d weir.Decision
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Do(ctx, store.Take, &req, &d); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// postRules returns n rules that count posts per user, and others for other actions.
func postRules(n, others int) (rules []rule.Rule) {
	for i := range n + others {
		r := rule.Rule{
			Name: fmt.Sprint("rule-", i), Per: []string{"user"}, Quota: &rule.Quota{Value: exactLimit.Quota},
			Window: window.Sliding(exactLimit.Window.Length * time.Duration(i%max(n, 1)%4+1)),
			When:   equals("action", "post"),
		}
		if i >= n {
			r.When[0].Test = rule.Equal(fmt.Sprint("action-", i))
		}
		rules = append(rules, r)
	}
	return rules
}

// silent is an observer that does nothing.
type silent struct{}

func (silent) Decided(context.Context, store.Verb, *weir.Decision, time.Duration) {}
func (silent) Failed(context.Context, store.Verb, error)                          {}
func (silent) Outage(context.Context, store.Verb, error)                          {}

// floor decides by one rule, which is written in the program: it finds the
// attributes, builds the key, asks the same store and fills in a Decision.
type floor struct {
	store *memstore.Store
	space *store.Space
	limit *window.Compiled
	set   *rule.Set
}

func newFloor() *floor {
	set, err := rule.New(postRules(1, 0), nil)
	if err != nil {
		panic(err)
	}
	return &floor{memstore.New(), store.NewSpace("", "s", "s", 0), window.MustCompile(exactLimit), set}
}

func (f *floor) take(ctx context.Context, r *weir.Request, d *weir.Decision) error {
	var action, user string
	for i := range r.Attributes {
		switch a := &r.Attributes[i]; a.Name {
		case "action":
			action = a.Value
		case "user":
			user = a.Value
		}
	}
	if action != "post" || user == "" {
		return nil
	}
	var room [64]byte
	key := append(append(room[:0], byte(len(user))), user...)
	if d.Usages == nil {
		d.Usages = make([]weir.Usage, 1)
	}
	u := &d.Usages[0]
	ops := [1]store.Op{{Space: f.space, Limit: f.limit, Key: key, N: 1}}
	if err := f.store.Decide(ctx, store.Take, ops[:]); err != nil {
		return err
	}
	u.Result = ops[0].Result
	u.Rule, u.Kind, u.Key, u.Shadow, u.Hits = "rule-0", rule.KindLimit, user, false, 1
	d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = true, rule.Allow, "", 0, ""
	if !u.Allowed {
		d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, rule.Deny, "rule-0", u.RetryAfter, "rule-0"
	}
	d.Rules = f.set
	return nil
}
