package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirhq/weir/store"
)

func TestVerbNames(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(store.Check, store.Take, store.Record, store.Refund, store.Verb(9))
	if want := "check take record refund unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOutageError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ops  []int
		want string
	}{
		{nil, "store out of reach: weir: the rule has max_keys keys"},
		{[]int{0, 2}, "store out of reach for 2 ops: weir: the rule has max_keys keys"},
	} {
		err := error(&store.OutageError{Ops: test.ops, Err: store.ErrFull})
		if err.Error() != test.want {
			t.Errorf("got %q, want %q", err, test.want)
		}
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("got %v, want it to wrap %v", err, store.ErrFull)
		}
	}
}
