package rule_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A quota can have a case for each of many customers: the time grows with their number, and not
// with its square, which would be minutes here.
func TestManyCases(t *testing.T) {
	t.Parallel()
	cases := map[string]int64{}
	for i := range int64(100_000) {
		cases[strconv.FormatInt(i, 10)] = i
	}
	began := time.Now()
	_, err := rule.New([]rule.Rule{{
		Name: "calls", Per: []string{"customer"}, Quota: &rule.Quota{By: "customer", Cases: cases}, Window: window.Sliding(time.Hour),
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("got %v for %d cases, want at most 20s", took, len(cases))
	}
}
