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

// Events that wait for a webhook expire when none was added for a day and an hour, with all that Redis has of them.
// Other registers never expire.
func TestOutboxExpires(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=10s")
	for name, age := range map[string]int64{"events/removed": 90_000_000, "events": -1, "overrides": -1} {
		for version, turn := int64(0), 0; turn < 2; turn++ {
			var err error
			if version, err = s.Keep(t.Context(), name, version, []string{"a", "b"}, []string{"somebody", ""}); err != nil || version == 0 {
				t.Fatalf("got %d, %v", version, err)
			}
			for _, part := range []string{"", ":changed", ":removed"} {
				key := "weir:kept:{" + name + "}" + part
				if ttl := n.Must("PTTL", key).(int64); ttl != age && (age < 0 || ttl < age-60_000 || ttl > age) {
					t.Errorf("%s: got a time to live of %d ms, want %d", key, ttl, age)
				}
				if age > 0 {
					n.Must("PEXPIRE", key, "1000000") // as if time had passed
				}
			}
		}
	}
}
