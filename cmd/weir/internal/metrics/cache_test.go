package metrics_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/metrics"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Several goroutines count decisions of many rules, which become known meanwhile.
// Every decision is counted once.
func TestDecidedConcurrently(t *testing.T) {
	t.Parallel()
	const callers, rules, rounds = 4, 50, 20
	m := metrics.New(metrics.Config{Version: "v1.2.3"})
	n := m.Namespace("default")
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range rules * rounds {
				name := fmt.Sprint("rule-", i%rules)
				n.Decided(t.Context(), store.Take, &weir.Decision{
					Outcome: "deny", Rule: name,
					Usages: []weir.Usage{{Rule: name}, {Rule: "views", Result: window.Result{Allowed: true}}},
				}, time.Microsecond)
			}
		})
	}
	all.Wait()
	got := read(m)
	for i := range rules {
		for _, line := range []string{
			fmt.Sprintf(`weir_decisions_total{namespace="default",outcome="deny",rule="rule-%d",verb="take"} %d`, i, callers*rounds),
			fmt.Sprintf(`weir_rule_matched_total{namespace="default",rule="rule-%d"} %d`, i, callers*rounds),
			fmt.Sprintf(`weir_rule_over_total{mode="enforce",namespace="default",rule="rule-%d"} %d`, i, callers*rounds),
		} {
			if !got[line] {
				t.Errorf("got no line %s", line)
			}
		}
	}
	if line := fmt.Sprintf(`weir_rule_matched_total{namespace="default",rule="views"} %d`, callers*rules*rounds); !got[line] {
		t.Errorf("got no line %s", line)
	}
}
