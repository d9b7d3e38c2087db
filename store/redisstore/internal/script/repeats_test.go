package script_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// The plan of a run names all keys that repeat earlier ones, and few others.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 64 {
		keys = append(keys, fmt.Sprintf("weir:{user-%d}:rule:%016x", i, uint64(i)*0x9e3779b97f4a7c15))
	}
	if got := script.Repeats(keys); len(got) > 6 {
		t.Errorf("different keys: got %d that are read again, want 6 at most: %v", len(got), got)
	}
	keys[10], keys[20], keys[63] = keys[3], keys[3], keys[62]
	got := map[int]bool{}
	for _, i := range script.Repeats(keys) {
		got[i] = true
	}
	for _, want := range []int{11, 21, 64} { // from 1 on
		if !got[want] {
			t.Errorf("got %v, want key %d among them", got, want)
		}
	}
	if got[4] || got[63] {
		t.Errorf("got %v, want no key before the one that repeats it", got)
	}
}
