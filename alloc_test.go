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
