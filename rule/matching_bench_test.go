package rule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// BenchmarkMatch finds the two rules of many that match a request, another one
// each time. The cost must not grow with the number of rules, whichever
// condition is shared.
func BenchmarkMatch(b *testing.B) {
	equal := func(attribute string, i int) rule.Condition {
		return rule.Condition{Attribute: attribute, Test: rule.Equal(text(i))}
	}
	four := []string{"agent", "host", "path", "referer"}
	for _, layout := range []struct {
		name string
		when func(i int) []rule.Condition
	}{
		{"own", func(i int) []rule.Condition { return []rule.Condition{equal("path", i)} }},
		{"shared", func(i int) []rule.Condition { return []rule.Condition{equal("action", 0), equal("path", i)} }},
		{"spread", func(i int) []rule.Condition { return []rule.Condition{equal(four[i%4], i)} }},
	} {
		for _, n := range []int{10, 1_000, 10_000} {
			rules := make([]rule.Rule, n)
			for i := range rules {
				rules[i] = rule.Rule{Name: fmt.Sprint("r", i), When: layout.when(i), Per: []string{"user"}, Window: window.Sliding(time.Hour)}
			}
			rules[n-1] = rule.Rule{Name: "all", Per: []string{"user"}, Window: window.Sliding(time.Hour)}
			set, err := rule.New(rules, nil)
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			requests := make([][]string, 1024)
			for k := range requests {
				// Other attributes have values that no rule asks for.
				i := r.IntN(n - 1)
				request := map[string]string{"action": text(0), "user": "42", "path": text(i), "host": "-", "agent": "-", "referer": "-"}
				if layout.name == "spread" {
					request["path"] = "-"
					request[four[i%4]] = text(i)
				}
				requests[k] = vector(set, request)
			}
			b.Run(fmt.Sprintf("%s/rules=%d", layout.name, n), func(b *testing.B) {
				b.ReportAllocs()
				dst := make([]int, 0, 8)
				for k := 0; b.Loop(); k++ {
					dst = set.Compiled().Match(requests[k%len(requests)], dst[:0], false)
				}
				if len(dst) != 2 {
					b.Fatalf("got %d rules, want 2", len(dst))
				}
			})
		}
	}
}

func text(i int) string { return fmt.Sprint("/items/", i) }
