package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/window"
)

// A log that gets no entries expires at the age of its entries. TestLog in cmd/weir/internal/stores tests what it has.
func TestLogExpires(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=10s")
	if _, err := s.Log(t.Context(), "d", 24*time.Hour, []window.Instant{window.At(time.Now())}, []string{"entry"}, 0, 0); err != nil {
		t.Fatal(err)
	}
	if ttl := n.Must("PTTL", "weir:log:d").(int64); ttl < 86_000_000 || ttl > 86_400_000 {
		t.Errorf("got a time to live of %d ms, want a day", ttl)
	}
}
