package sharedlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/sharedlog"
	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/window"
)

// All of a log is read, in pages and for at most half of the time. What is added meanwhile repeats nothing.
func TestNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 10 * time.Millisecond
		var kept, want []string // the oldest one first
		for i := range sharedlog.Size {
			kept = append(kept, fmt.Sprint(i))
		}
		want = slices.Clone(kept)
		slices.Reverse(want)
		most, used := 0, time.Duration(0)
		log := sharedlog.Log(func(_ context.Context, _ string, _ time.Duration, _ []window.Instant, _ []string, skip, n int) ([]string, error) {
			most, used = max(most, n), used+slow
			time.Sleep(slow) // fake time
			left := kept[:max(len(kept)-skip, 0)]
			page := left[max(len(left)-n, 0):]
			kept = append(kept[1:], fmt.Sprint("added", len(kept), used))
			return page, nil
		})
		for _, n := range []int{10, 1000, sharedlog.Size} {
			kept = slices.Clone(want)
			slices.Reverse(kept)
			most, used = 0, 0
			began := time.Now()
			var got []string
			all, err := log.Newest(t.Context(), "a", n, new(export.Pace), func(entry string) bool {
				got = append(got, entry)
				return true
			})
			if len(got) > n || len(got) < n-40 || !slices.Equal(got, want[:len(got)]) || all != (n == sharedlog.Size) || err != nil {
				t.Errorf("%d: got %d entries, all of them: %v, %v", n, len(got), all, err)
			}
			if most > 250 || time.Since(began) < 2*used {
				t.Errorf("%d: got up to %d entries a read, which took %v of %v, want 250 and half of the time", n, most, used, time.Since(began))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := log.Newest(ctx, "a", 1000, new(export.Pace), func(string) bool { cancel(); return true }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a caller that has left", err)
		}
	})
}
