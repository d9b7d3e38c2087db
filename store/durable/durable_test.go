package durable_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// An engine keeps its counters from one process to the next, and a receipt of the first
// one is valid in the second. It counts in the memory of the store, unless calls wait for
// the disk, or another store embeds it.
func TestEngine(t *testing.T) {
	t.Parallel()
	for _, sync := range []durable.Sync{durable.Always, durable.Interval, durable.OS} {
		dir := t.TempDir()
		var receipt weir.Receipt
		for process := range int64(2) {
			var events []string
			s, err := durable.Open(dir, durable.WithSync(sync), durable.WithEvents(func(_ slog.Level, text string) { events = append(events, text) }))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := durable.Open(dir); !errors.Is(err, durable.ErrLocked) {
				t.Errorf("opened twice: got error %v, want %v", err, durable.ErrLocked)
			}
			if len(events) != 1 || s.Stats().Loaded != process {
				t.Errorf("%s: got events %v and %+v, want %d loaded", sync, events, s.Stats(), process)
			}
			if h := hook.Of(s); (h.Memory != nil) != (sync != durable.Always) || h.Keyed == nil || h.SideStore == nil {
				t.Errorf("%s: got hooks %+v", sync, h)
			}
			if h := hook.Of(struct{ *durable.Store }{s}); h.Memory != (*memstore.Store)(nil) || h.Keyed == nil {
				t.Errorf("%s, embedded: got hooks %+v", sync, h)
			}
			receipt = use(t, s, receipt, process)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := store.Do(t.Context(), s, store.Check, nil); !errors.Is(err, store.ErrClosed) {
				t.Errorf("closed: got error %v, want %v", err, store.ErrClosed)
			}
		}
	}
}

// use cancels the take of a receipt, which the last process has left, and takes twice.
func use(t *testing.T, s *durable.Store, last weir.Receipt, process int64) weir.Receipt {
	t.Helper()
	rules, err := rule.New([]rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 9}, Window: window.Ever(), Hold: 3600e9}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := weir.NewEngine(rules, weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	r := weir.Request{Attributes: weir.Attributes("user", "ann")}
	if process > 0 {
		if d, err := e.Cancel(t.Context(), last, r); err != nil || !d.Usages[0].Held || d.Usages[0].Used != 1 {
			t.Errorf("cancel: got %+v and error %v, want the take of the last process given back", d, err)
		}
	}
	for want := range int64(2) {
		d, err := e.Take(t.Context(), r)
		if err != nil || d.Usages[0].Used != process+want+1 {
			t.Errorf("take: got %+v and error %v, want %d used", d, err, process+want+1)
		}
		last = d.Receipt
	}
	return last
}

func ExampleOpen() {
	fmt.Println(durable.Open("", durable.WithSync("never")))
	// Output: <nil> data directory: sync: "never": not one of always, interval, os
}
