package stores_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/window"
)

// A log has the newest entries of all stores on a prefix, each once, as many and as old as
// it may.
func TestLog(t *testing.T) {
	t.Parallel()
	for scheme, serve := range oneServer {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			url, _ := serve(t)
			testLog(t, url)
		})
	}
}

func testLog(t *testing.T, url string) {
	var instances [2]stores.Shared
	for i := range instances {
		at, err := stores.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if instances[i], err = at.Open(t.Context(), stores.Options{Timeout: 20 * time.Second}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = instances[i].Close() })
	}
	log := func(i int, name string, most int, at []window.Instant, entries ...string) []string {
		t.Helper()
		newest, err := instances[i].Log(t.Context(), name, 24*time.Hour, at, entries, 0, most)
		if err != nil {
			t.Fatal(err)
		}
		return newest
	}
	has := func(name string, most int, want ...string) {
		t.Helper()
		if got := log(0, name, most, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	now := window.At(time.Now())
	has("a", 10)
	log(0, "a", 0, []window.Instant{now + 2, now + 1}, "two", "one")
	log(1, "a", 0, []window.Instant{now + 3, now + 2}, "three\x00\xff", "two")
	log(1, "b {x}", 0, []window.Instant{now}, "other")
	has("a", 10, "one", "two", "three\x00\xff")
	has("a", 1, "three\x00\xff")
	has("b {x}", 10, "other")

	// What is older than a day goes, and an entry of an instance whose clock is ahead is as old as its call.
	now = window.At(time.Now())
	log(0, "c", 0, []window.Instant{now.Add(-24*time.Hour) - 1, now.Add(-23 * time.Hour)}, "too old", "old")
	for range 2 { // the answer to the first call was lost
		log(1, "c", 0, []window.Instant{now.Add(10_000 * time.Hour)}, "ahead")
	}
	log(0, "c", 0, []window.Instant{window.At(time.Now())}, "new")
	has("c", 10, "old", "ahead", "new")

	var all []string
	for i := 0; i < 10_300; i += 100 {
		var at []window.Instant
		for k := range 100 {
			at, all = append(at, now+window.Instant(i+k)-20_000), append(all, fmt.Sprint(i+k))
		}
		log(i/100%2, "d", 0, at, all[i:]...)
	}
	has("d", 20_000, all[300:]...)
	for skip, want := range map[int][]string{5000: all[5050:5300], 9900: all[300:400], 10_000: nil} {
		if got, err := instances[0].Log(t.Context(), "d", 0, nil, nil, skip, 250); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v after the newest %d, want %q", got, err, skip, want)
		}
	}
}
