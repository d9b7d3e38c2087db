package top_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/store"
)

// Denials that were dropped take no memory while the side store cannot write, as with a directory
// that is read-only.
func TestSideStoreThatNeverWrites(t *testing.T) {
	rules := set(t, "rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	now := time.Unix(1_000_020, 0)
	c := opened(t, top.Config{Keys: 10, Side: newSideStore(), Now: func() time.Time { return now }})
	d := decision(rules, false)
	deny := func(n int) {
		for i := range n {
			d.Usages[0].Key = fmt.Sprint(i % 1000)
			if c.Decided(t.Context(), store.Take, d, 0); i%1000 == 999 {
				c.Missed() // counts
				now = now.Add(10 * time.Second)
			}
		}
	}
	deny(100_000)
	before := heap()
	deny(2_000_000)
	if after := heap(); after > before+1<<20 {
		t.Errorf("got %d bytes more after 2,000,000 further denials, want at most 1 MiB", after-before)
	}
	runtime.KeepAlive(c)
}
