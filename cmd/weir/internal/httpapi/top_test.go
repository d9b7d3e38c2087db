package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
)

// An answer about very many rules stays small.
func TestTopOfManyRules(t *testing.T) {
	t.Parallel()
	rules := "rules: ["
	for i := range 6000 {
		rules += fmt.Sprintf("{name: rule-%d, when: {page: page-%d}, per: [user], limit: 9, window: 1h},", i, i)
	}
	b := newBench(t, rules+"]")
	for i := range 6000 {
		for _, user := range []string{"ann", "bob"} {
			b.call(t, fmt.Sprintf("POST /v1/take\n{\"attributes\": {\"page\": \"page-%d\", \"user\": %q}}", i, user))
		}
		if i%1000 == 0 {
			b.call(t, "GET /v1/top?rule=rule-0") // which counts
		}
	}
	for query, keys := range map[string]int{"n=1000": 6000, "n=1000&rule=rule-7": 2} {
		if got := strings.Count(b.call(t, "GET /v1/top?"+query), `{"key":`); got != keys {
			t.Errorf("%s: got %d keys, want %d", query, got, keys)
		}
	}
}
