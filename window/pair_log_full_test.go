package window_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// Groups of a log can hold more than MaxHits together. When a hold makes such a log
// a pair log, what leaves it later is no more than what is in it.
func TestFullLogWithHoldsNeverUsesLessThanNothing(t *testing.T) {
	t.Parallel()
	declared := window.Limit{Quota: window.MaxHits, Window: window.Sliding(time.Minute)}
	plain := window.MustCompile(declared)
	now := window.Instant(1e15)
	var s window.State
	for _, n := range []int64{3, window.MaxHits, 2, window.MaxHits, 1} {
		s, _ = plain.Record(s, now, window.Hits{N: n})
		now = now.Add(time.Second)
	}
	s, _ = plain.GiveBackNow(s, now, 1, window.Hits{N: 1}) // nothing is dated so early
	for range 700 {
		now = now.Add(100 * time.Millisecond)
		if r := plain.Check(s, now, window.Hits{}); r.Used < 0 {
			t.Fatalf("got %+v, want at least 0 used", r)
		}
	}
}
