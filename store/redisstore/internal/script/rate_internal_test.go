package script

import (
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

func TestRate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit window.Limit
		want  [3]int64
	}{
		{window.Limit{Quota: 60, Window: window.Bucket(time.Minute, 0)}, [3]int64{1, 1_000_000, 60}},
		{window.Limit{Quota: 7, Window: window.Bucket(10*time.Microsecond, 0)}, [3]int64{7, 10, 1}},
		{window.Limit{Quota: 0, Window: window.Bucket(time.Second, 5)}, [3]int64{0, 1, 1_000_000}},
	} {
		hits, per, divisor := rate(&tc.limit)
		if got := [3]int64{hits, per, divisor}; got != tc.want {
			t.Errorf("%d per %s: got %v, want %v", tc.limit.Quota, tc.limit.Window, got, tc.want)
		}
	}
}

func TestCellWidth(t *testing.T) {
	t.Parallel()
	l := window.MustCompile(window.Limit{Quota: 1, Window: window.Cells(time.Second, 7)})
	if got := cellWidth(l); got != 142_858 {
		t.Errorf("got cells of %d µs, want 142858", got)
	}
}
