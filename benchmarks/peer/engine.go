package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Engine returns the rows with an Engine, and those with Limiters for comparison.
// The limiters of these rows can be called by one goroutine only. They ignore the key
// that they are given, because the request has one.
func Engine() []Peer {
	one := engineOf("Engine, 1 rule", limitRules(1))
	one.Reference = true
	return []Peer{
		limiters(1),
		limiters(3),
		engineFloor(1),
		engineFloor(3),
		one,
		engineOf("Engine, 3 rules, all match", limitRules(3)),
		engineOf("Engine, 1 rule, hits in groups", inGroups(1)),
		engineOf("Engine, 3 rules, hits in groups", inGroups(3)),
		engineOf("Engine, 10 rules, one matches by equality", equalRules(10)),
		engineOf("Engine, 1,000 rules, one matches by equality", equalRules(1000)),
		engineOf("Engine, 10,000 rules, one matches by equality", equalRules(10_000)),
	}
}

// exact returns c. If the quota of c is never used up, it returns a limit of up to
// a hundred hits instead, with a window so short that hits leave as fast as they
// come.
func exact(c Config) Config {
	if c.Quota > 100 {
		c.Quota, c.Window = 100, min(c.Window, 5*time.Microsecond)
	}
	return c
}

// limiters calls n Limiters, one after the other.
func limiters(n int) Peer {
	name := "Limiter.Allow"
	if n > 1 {
		name = fmt.Sprintf("%d × Limiter.Allow", n)
	}
	return Peer{Name: name, New: func(c Config) (Limiter, error) {
		var some []*weir.Limiter
		for range n {
			l, err := weir.NewLimiter(sliding(exact(c)))
			if err != nil {
				return Limiter{}, err
			}
			some = append(some, l)
		}
		ctx := context.Background()
		return Limiter{Allow: func(string) bool {
			for _, l := range some {
				if r, err := l.Allow(ctx, "42"); err != nil || !r.Allowed {
					return false
				}
			}
			return true
		}}, nil
	}}
}

// limitRules returns n exact rules per user that all match.
func limitRules(n int) func(Config) []rule.Rule {
	return func(c Config) []rule.Rule { return inGroups(n)(exact(c)) }
}

// inGroups returns the same rules with the quota of the section. It is so large
// that hits are counted in groups.
func inGroups(n int) func(Config) []rule.Rule {
	return func(c Config) []rule.Rule {
		var rules []rule.Rule
		for i := range n {
			rules = append(rules, rule.Rule{
				Name: fmt.Sprint("rule-", i), Per: []string{"user"},
				Quota:  &rule.Quota{Value: c.Quota},
				Window: window.Sliding(c.Window * time.Duration(i+1)),
				When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
			})
		}
		return rules
	}
}

// equalRules returns n rules for n actions. Requests have the last action.
func equalRules(n int) func(Config) []rule.Rule {
	return func(c Config) []rule.Rule {
		var rules []rule.Rule
		for i := range n {
			r := limitRules(1)(c)[0]
			r.Name = fmt.Sprint("rule-", i)
			if i < n-1 {
				r.When[0].Test = rule.Equal(fmt.Sprint("action-", i))
			}
			rules = append(rules, r)
		}
		return rules
	}
}

// engineFloor returns the least that a decision by n rules needs: it finds the
// attributes, builds the key, asks the same store and fills in a Decision. The rules are
// written in the program.
func engineFloor(n int) Peer {
	p := Peer{Name: "floor: one rule written in the program", Note: "attributes, key, the same call of the same store, Decision"}
	if n > 1 {
		p = Peer{Name: fmt.Sprintf("floor: %d rules written in the program", n)}
	}
	p.New = func(c Config) (Limiter, error) {
		c = exact(c)
		f := written{store: memstore.New(), attrs: weir.Attributes("action", "post", "user", "42")}
		f.decision.Usages = make([]weir.Usage, n)
		for i := range n {
			limit, err := window.Compile(weir.Sliding(c.Quota, c.Window*time.Duration(i+1)))
			if err != nil {
				return Limiter{}, err
			}
			name := fmt.Sprint("rule-", i)
			f.ops = append(f.ops, store.Op{Space: store.NewSpace("", name, name, 0), Limit: limit, N: 1})
		}
		return Limiter{
			Allow: func(string) bool { return f.take() },
			Close: func() { _ = f.store.Close() }, // a store in memory closes without error
		}, nil
	}
	return p
}

// written is the program that engineFloor measures.
type written struct {
	store    *memstore.Store
	attrs    []weir.Attribute
	ops      []store.Op // one for each rule
	decision weir.Decision
}

// take decides the request, and reports whether it was admitted.
func (f *written) take() bool {
	var action, user string
	for i := range f.attrs {
		switch a := &f.attrs[i]; a.Name {
		case "action":
			action = a.Value
		case "user":
			user = a.Value
		}
	}
	if action != "post" || user == "" {
		return false
	}
	var room [64]byte
	key := append(append(room[:0], byte(len(user))), user...)
	if !f.ask(key) {
		return false
	}
	d := &f.decision
	d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = true, rule.Allow, "", 0, ""
	for i := range d.Usages {
		u, name := &d.Usages[i], f.ops[i].Space.Name()
		u.Rule, u.Kind, u.Key, u.Shadow, u.Hits = name, rule.KindLimit, user, false, 1
		if !u.Allowed && d.Allowed {
			d.Allowed, d.Outcome, d.Rule, d.RetryAfter, d.RetryRule = false, rule.Deny, name, u.RetryAfter, name
		}
	}
	return d.Allowed
}

// ask lets the store decide, and reports whether it did.
func (f *written) ask(key []byte) bool {
	for i := range f.ops {
		f.ops[i].Key = key
	}
	if err := f.store.Call(context.Background(), store.Take, f.ops); err != nil {
		return false
	}
	for i := range f.ops {
		f.decision.Usages[i].Result = f.ops[i].Result
	}
	return true
}

func engineOf(name string, rules func(Config) []rule.Rule) Peer {
	return Peer{Name: name, New: func(c Config) (Limiter, error) {
		set, err := rule.New(rules(c), nil)
		if err != nil {
			return Limiter{}, err
		}
		e, err := weir.NewEngine(set)
		if err != nil {
			return Limiter{}, err
		}
		var (
			ctx = context.Background()
			req = weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")}
			d   weir.Decision
		)
		return Limiter{
			Allow: func(string) bool { return e.Do(ctx, weir.Take, &req, &d) == nil && d.Allowed },
			Close: func() { _ = e.Close() }, // a store in memory closes without error
		}, nil
	}}
}
