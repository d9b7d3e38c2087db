package wire_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// The quickest round trip stays for a second at least and two at most. Longer ones,
// of which there are more when callers wait, do not displace it.
func TestQuickest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var q wire.Quickest
	for _, step := range []struct{ now, trip, want time.Duration }{
		{0, 9 * ms, 9 * ms},
		{10 * ms, 3 * ms, 3 * ms},
		{20 * ms, 30 * ms, 3 * ms},
		{1001 * ms, 20 * ms, 3 * ms},
		{1500 * ms, 6 * ms, 3 * ms},
		{2002 * ms, 40 * ms, 6 * ms},
		{3003 * ms, 40 * ms, 40 * ms},
		{3004 * ms, ms, ms},
	} {
		q.Learn(step.trip, step.now)
		if got := q.Get(); got != step.want {
			t.Errorf("at %v, after a trip of %v: got %v, want %v", step.now, step.trip, got, step.want)
		}
	}
}
