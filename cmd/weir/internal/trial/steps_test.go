package trial_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// visits is a log in which user i%users visits page i%pages, for i below n.
type visits struct{ n, pages, users, at int }

func (v *visits) Open(context.Context, []string) (replay.Reader, error) { v.at = 0; return v, nil }
func (v *visits) Close() error                                          { return nil }

func (v *visits) Next(e *replay.Entry) error { // attributes: page, user
	if v.at == v.n {
		return io.EOF
	}
	e.Values[0], e.Values[1] = names[v.at%v.pages], names[v.at%v.users]
	v.at++
	return nil
}

var names = func() (all [10_000]string) {
	for i := range all {
		all[i] = fmt.Sprint("n", i)
	}
	return all
}()

// pages returns a rule for each page, per user, and the key of user n0 of each.
func pages(t testing.TB, n int) (*rule.Set, []trial.Key) {
	t.Helper()
	rules, keys := make([]rule.Rule, n), make([]trial.Key, n)
	for i := range rules {
		rules[i] = rule.Rule{
			Name: names[i], When: []rule.Condition{{Attribute: "page", Test: rule.Equal(names[i])}}, Per: []string{"user"},
			Quota: &rule.Quota{Value: 5}, Window: window.Fixed(1e9),
		}
	}
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		keys[i] = trial.Key{Rules: set, Rule: i, Key: names[0]}
	}
	return set, keys
}

// What a request costs does not depend on the number of keys.
func TestStepsOfManyKeys(t *testing.T) {
	allocated := func(n int) float64 {
		set, keys := pages(t, n)
		log := &visits{n: 1000, pages: n, users: 1}
		return testing.AllocsPerRun(1, func() {
			found := 0
			if err := trial.Steps(t.Context(), log, []*rule.Set{set}, keys, func(int, *replay.Entry, trial.Step) bool { found++; return false }); err != nil {
				t.Fatal(err)
			}
			if found != 1000 {
				t.Errorf("got %d requests, want all", found)
			}
		})
	}
	few, many := allocated(1), allocated(1000)
	if many > few+5000 {
		t.Errorf("got %.0f allocations for the keys of 1000 rules, and %.0f for one", many, few)
	}
}

func BenchmarkSteps(b *testing.B) {
	set, keys := pages(b, len(names))
	log := &visits{n: 50_000, pages: len(names), users: len(names)}
	for b.Loop() {
		if err := trial.Steps(b.Context(), log, []*rule.Set{set}, keys, func(int, *replay.Entry, trial.Step) bool { return false }); err != nil {
			b.Fatal(err)
		}
	}
}
