package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// wrapping is a store that inherits all methods. A value of it is not comparable if
// more is not empty.
type wrapping struct {
	store.Single
	store.Store
	more []int
}

func (w wrapping) Itself() store.Store { return w }

// A store has the fast way of its own, and not the one of a store that it embeds.
func TestSingleOf(t *testing.T) {
	t.Parallel()
	memory := memstore.New()
	defer memory.Close()
	if got := store.SingleOf(memory); got != store.Single(memory) {
		t.Errorf("got %v, want the store itself", got)
	}
	for name, s := range map[string]store.Store{
		"embeds a pointer":  struct{ *memstore.Store }{memory},
		"has no fast way":   struct{ store.Store }{memory},
		"is not comparable": wrapping{Single: memory, Store: memory, more: []int{1}},
		"nil":               nil,
	} {
		if got := store.SingleOf(s); got != nil {
			t.Errorf("a store that %s: got %v, want nil", name, got)
		}
	}
}

func TestVerbNames(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(store.Check, store.Take, store.Record, store.Refund, store.Verb(9))
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
		{store.OutageError{Err: refused}, "store out of reach: connection refused"},
		{store.OutageError{Ops: []int{0, 2}, Err: refused}, "store out of reach for 2 ops: connection refused"},
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
