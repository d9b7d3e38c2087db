package rule_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Rules of a long list share their compiled limits, and a copy of the set with addresses shares the rules that test none. The test is
// not parallel, because it measures the memory of the process.
func TestMemoryOfARule(t *testing.T) {
	const n = 10_000
	var rules []rule.Rule
	for i := range n {
		rules = append(rules, rule.Rule{
			Name: fmt.Sprintf("plan-%d", i), When: []rule.Condition{{Attribute: "tenant", Test: rule.Equal(fmt.Sprintf("t%d", i))}},
			Per: []string{"ip"}, Quota: &rule.Quota{Value: int64(i % 10)}, Window: window.Sliding(time.Hour),
		})
	}
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := live()
	addresses, err := set.WithAddresses("ip")
	if err != nil {
		t.Fatal(err)
	}
	if got, copied := (made-before)/n, (live()-made)/n; got > 1500 || copied > 10 {
		t.Errorf("got %d bytes for a rule, and %d in a copy with addresses, want at most 1500 and 10", got, copied)
	}
	runtime.KeepAlive(rules)
	runtime.KeepAlive(set)
	runtime.KeepAlive(addresses)
}
