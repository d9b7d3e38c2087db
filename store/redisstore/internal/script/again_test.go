package script_test

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// A step whose calendar periods are off is sent again with those that the server names,
// twice for each op and once more. That a key has a ban does not count.
func TestAgain(t *testing.T) {
	t.Parallel()
	const now, later = window.Instant(1e15), window.Instant(2e15)
	call := script.Call{Ops: make([]store.Op, 1)}
	again := func(err error, want bool) {
		t.Helper()
		if got := call.Again(err, now); got != want {
			t.Errorf("after %v: got %t, want %t", err, got, want)
		}
	}
	ban := &script.StateError{Head: "\x01\x0d"}
	again(errors.New("another"), false)
	again(ban, true)
	if full, _, _ := call.Retries(); !full {
		t.Error("got no program for bans")
	}
	again(ban, false)
	again(&script.CalendarError{At: later}, true)
	if _, near, first := call.Retries(); near != 0 || first != later {
		t.Errorf("a key that has seen a later instant: got %v and %v, want 0 and %v", near, first, later)
	}
	again(&script.CalendarError{At: now}, true) // its state is gone meanwhile
	if _, near, first := call.Retries(); near != now || first != now {
		t.Errorf("without the key: got %v and %v, want the server's instant", near, first)
	}
	again(&script.CalendarError{At: later}, true)
	again(&script.CalendarError{At: later}, false)
}
