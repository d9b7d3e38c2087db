package top_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The memory is bounded, however many keys and rules
// there are, with keys of 20 bytes.
func TestMemory(t *testing.T) {
	for _, row := range []struct {
		rules int
		most  float64 // MB
	}{{1, 5}, {50, 50}, {1000, 50}} {
		text := "rules: ["
		for i := range row.rules {
			text += fmt.Sprintf("{name: rule-%d, per: [user], limit: 1, window: 1h},", i)
		}
		rules := scripttest.Rules(t, text+"]")
		now := time.Unix(0, 0)
		c := top.New(top.Config{Keys: top.DefaultKeys, Now: func() time.Time { return now }}, "default")
		c.Follow(func() *rule.Set { return rules })
		before := heap()
		for range 2 { // periods
			now = now.Add(5 * time.Minute)
			for n := range min(50_000/row.rules, 1000) + 100 {
				for i := range row.rules {
					d := decision(rules, false)
					d.Rule = rules.Rule(i).Name
					d.Usages[0].Rule, d.Usages[0].Key = d.Rule, fmt.Sprintf("user-%015d", n)
					c.Decided(t.Context(), store.Take, d, 0)
					c.Decided(t.Context(), store.Record, &weir.Decision{Allowed: true, Rules: rules, Usages: []weir.Usage{
						{Rule: d.Rule, Key: d.Usages[0].Key, Hits: 1, Result: window.Result{ResetAfter: time.Hour}},
					}}, 0)
				}
				if n%(1+1000/row.rules) == 0 { // rows have room for so many
					c.Missed() // counts
				}
			}
		}
		wants(t, "missed", c.Missed(), int64(0))
		took := float64(heap()-before) / 1e6
		t.Logf("%d rules: %.1f MB", row.rules, took)
		if took > row.most {
			t.Errorf("%d rules: got %.1f MB, want at most %.0f MB", row.rules, took, row.most)
		}
		runtime.KeepAlive(c)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
