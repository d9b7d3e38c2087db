package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// A log has the newest entries of all stores on a prefix, each once, as many and as old as
// it may.
func TestLog(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	var stores [2]*redisstore.Store
	for i := range stores {
		s, err := redisstore.Open(t.Context(), "redis://"+n.Addr()+"?timeout=10s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	read := func(name string, most int) []string {
		t.Helper()
		got, err := stores[0].Log(t.Context(), name, 24*time.Hour, nil, nil, most)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	add := func(i int, name string, at []window.Instant, entries ...string) {
		t.Helper()
		if _, err := stores[i].Log(t.Context(), name, 24*time.Hour, at, entries, 0); err != nil {
			t.Fatal(err)
		}
	}
	now := window.At(time.Now())
	if got := read("a", 10); len(got) != 0 {
		t.Errorf("got %q of a log that is not there", got)
	}
	add(0, "a", nil)
	add(0, "a", []window.Instant{now + 2, now + 1}, "two", "one")
	add(1, "a", []window.Instant{now + 3, now + 2}, "three\x00\xff", "two")
	add(1, "b {x}", []window.Instant{now}, "other")
	if got, want := read("a", 10), []string{"one", "two", "three\x00\xff"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := read("a", 1), []string{"three\x00\xff"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := read("b {x}", 10); !slices.Equal(got, []string{"other"}) {
		t.Errorf("got %q of the other log", got)
	}

	// What is older than a day goes, and an instance whose clock is ahead drops nothing else.
	now = window.At(time.Now())
	add(0, "c", []window.Instant{now.Add(-24*time.Hour) - 1, now.Add(-23 * time.Hour)}, "too old", "old")
	add(1, "c", []window.Instant{now.Add(10_000 * time.Hour)}, "ahead")
	add(0, "c", []window.Instant{window.At(time.Now())}, "new")
	if got, want := read("c", 10), []string{"old", "ahead", "new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := 0; i < 10_300; i += 100 {
		var at []window.Instant
		var entries []string
		for k := range 100 {
			at, entries = append(at, now+window.Instant(i+k)-20_000), append(entries, fmt.Sprint(i+k))
		}
		add(i/100%2, "d", at, entries...)
	}
	got := read("d", 20_000)
	if len(got) != 10_000 || got[0] != "300" || got[9999] != "10299" {
		t.Errorf("got %d entries from %q on, want the newest 10000", len(got), got[0])
	}
	if ttl := n.Must("PTTL", "weir:log:d").(int64); ttl < 86_000_000 || ttl > 86_400_000 {
		t.Errorf("got a time to live of %d ms, want a day", ttl)
	}
	t.Logf("%v bytes an entry of 5 bytes", n.Must("MEMORY", "USAGE", "weir:log:d", "SAMPLES", "0").(int64)/10_000)
}
