package script_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// Hits of a limit with a condition are given back while they are in both of
// its windows. The key stays in use for longer.
func TestInside(t *testing.T) {
	t.Parallel()
	at := window.At(time.Date(2026, 3, 2, 12, 0, 59, 800e6, time.UTC)) // 200 ms before a minute ends
	day, minute := window.Calendar(window.Day, nil), window.Calendar(window.Minute, nil)
	for _, test := range []struct {
		base, inner window.Window
		want        time.Duration
	}{
		{day, minute, 200 * time.Millisecond},
		{minute, day, 200 * time.Millisecond},
		{day, window.Sliding(2 * time.Second), 2 * time.Second},
		{window.Sliding(3 * time.Second), window.Sliding(time.Hour), 3 * time.Second},
		{day, window.Bucket(time.Second, 0), 100 * time.Millisecond},
	} {
		op := store.Op{Limit: window.MustCompile(window.Limit{
			Quota: 10, Window: test.inner, After: window.After{Count: 2, Window: test.base},
		})}
		op.Result.ResetAfter = 12 * time.Hour
		if got := script.Inside(&op, at); got != test.want {
			t.Errorf("%v after %v: got %v, want %v", test.inner, test.base, got, test.want)
		}
	}
}

// Hits that never leave can be given back at any time, also those of a limit after a count that
// never ends.
func TestInsideForEver(t *testing.T) {
	t.Parallel()
	at := window.At(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	for _, limit := range []window.Limit{
		{Quota: 10, Window: window.Ever()},
		{Quota: 10, Window: window.Sliding(time.Minute), After: window.After{Count: 2, Window: window.Ever()}},
	} {
		op := store.Op{Limit: window.MustCompile(limit)}
		op.Result.ResetAfter = window.Never
		if got := script.Inside(&op, at); got < time.Minute {
			t.Errorf("%v: got %v, want at least a minute", op.Limit, got)
		}
	}
}
