package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirhq/weir/store"
)

func TestVerbNames(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(store.Check, store.Take, store.Record, store.Refund, store.Verb(10))
	if want := "check take record refund unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOutageError(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for _, test := range []struct {
		err  store.OutageError
		want string
	}{
		{store.OutageError{Err: refused}, "store unavailable: connection refused"},
		{store.OutageError{Ops: []int{0, 2}, Err: refused}, "store unavailable for 2 ops: connection refused"},
		{store.OutageError{Ops: []int{1}, Err: store.ErrFull}, store.ErrFull.Error()},
	} {
		err := error(&test.err)
		if err.Error() != test.want {
			t.Errorf("got %q, want %q", err, test.want)
		}
		if !errors.Is(err, test.err.Err) {
			t.Errorf("got %v, want it to wrap %v", err, test.err.Err)
		}
	}
}
