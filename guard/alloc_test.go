//go:build !race

package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/guardtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A call in memory whose caller cannot leave allocates nothing. The race detector drops pooled values at random.
func TestAllocations(t *testing.T) {
	keys := must(byKey(guardtest.Limiter(t, weir.Sliding(1_000_000, time.Hour))))
	rules := must(byRules(guardtest.Engine(t, []rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1_000_000}, Window: window.Fixed(time.Hour)}}, nil)))
	ask := question{key: "ann", attributes: weir.Attributes("user", "ann")}
	for name, g := range map[string]*guard.Middleware[question]{"keys": keys, "rules": rules} {
		if n := testing.AllocsPerRun(1000, func() {
			c, err := g.Take(context.Background(), ask)
			if err != nil || !c.Allowed {
				t.Fatal(err)
			}
			g.End(c)
		}); n > 0 {
			t.Errorf("%s: got %v allocations a call, want 0", name, n)
		}
	}
}
