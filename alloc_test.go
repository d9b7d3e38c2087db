//go:build !race

// The race detector makes sync.Pool forget at random, so these run without it.

package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func TestTakeAllocatesNothing(t *testing.T) {
	takesNothing(t, twoRules)
}

// Nor does a take that rules behind a verdict count.
func TestRestAllocatesNothing(t *testing.T) {
	takesNothing(t, `
outcomes:
  member: {allow: true}
rules:
  - {name: members, when: {action: post}, then: member, rest: count}
  - {name: blocked, when: {team: red}, then: deny, rest: count}
  - {name: posts, per: [user], limit: 5, window: 1h, feedback: {solved: 1}}
  - {name: teams, per: [team], window: 1h}
`)
	takesNothing(t, `
rules:
  - {name: first, per: [user], limit: 500, window: 1h}
  - {name: staff, when: {action: post}, then: allow, rest: count}
  - {name: posts, per: [user], limit: 5, window: 1h}
`)
}

func takesNothing(t *testing.T, rules string) {
	t.Helper()
	e := engine(t, rules)
	req := weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "team", "red")}
	var d weir.Decision
	got := testing.AllocsPerRun(1000, func() {
		if err := e.Do(context.Background(), weir.Take, &req, &d); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations a take, want 0", got)
	}
}

func TestAllowAllocatesNothing(t *testing.T) {
	m := weir.MustLimiter(weir.Sliding(1_000_000, time.Hour))
	defer m.Close()
	got := testing.AllocsPerRun(1000, func() {
		if _, err := m.Allow(context.Background(), "user:42"); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations a call, want 0", got)
	}
}

// Nor do a take that holds, its renewal and its settle, beside rules that do not
// hold, nor a ban.
func TestHoldsAllocateNothing(t *testing.T) {
	e := engine(t, `
rules:
  - {name: points, per: [user], limit: 500, window: 1h, hold: 5m}
  - {name: flight, per: [user], limit: 50, window: {held: 30s}}
  - {name: posts, per: [team], limit: 5000000, window: {fixed: 1h}}
  - {name: banned, per: [team], limit: 0, window: 1h, ban: 1m, mode: shadow}
`)
	take := weir.Request{Attributes: weir.Attributes("action", "post", "user", "ann", "team", "red")}
	end := take
	var d weir.Decision
	do := func(verb weir.Verb, r *weir.Request) {
		if err := e.Do(context.Background(), verb, r, &d); err != nil || verb != weir.Take && !d.Usages[0].Held {
			t.Fatalf("%v: got %+v and error %v, want it held", verb, d.Usages, err)
		}
	}
	cycle := func(last weir.Verb) func() {
		return func() {
			do(weir.Take, &take)
			end.Receipt = d.Receipt
			do(weir.Renew, &end)
			do(last, &end)
		}
	}
	do(weir.Take, &take) // so that no key comes and goes
	for _, last := range []weir.Verb{weir.Settle, weir.Cancel} {
		if got := testing.AllocsPerRun(100, cycle(last)); got != 0 {
			t.Errorf("got %v allocations a take, renew and %v, want 0", got, last)
		}
	}
}
