package script_test

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/window"
)

// A step whose calendar periods are off is sent again with those that the server names,
// twice for each op and once more. That a key has a ban does not count.
func TestAgain(t *testing.T) {
	t.Parallel()
	const now, later = window.Instant(1e15), window.Instant(2e15)
	var times script.Times
	again := func(err error, sent int, want bool) {
		t.Helper()
		var ok bool
		if times, ok = times.Again(err, now, sent, 1); ok != want {
			t.Errorf("after %d times: got %t, want %t", sent, ok, want)
		}
	}
	ban := &script.StateError{Head: "\x01\x0d"}
	again(errors.New("another"), 0, false)
	again(ban, 0, true)
	if !times.Around {
		t.Error("got no program for bans")
	}
	again(ban, 1, false)
	again(&script.CalendarError{At: later}, 1, true)
	if times.Near != 0 || times.Nears[0] != later {
		t.Errorf("a key that has seen a later instant: got %+v", times)
	}
	again(&script.CalendarError{At: now}, 2, true) // its state is gone meanwhile
	if times.Near != now || times.Nears[0] != now {
		t.Errorf("without the key: got %+v, want the server's instant", times)
	}
	again(&script.CalendarError{At: later}, 3, true)
	again(&script.CalendarError{At: later}, 4, false)
}
