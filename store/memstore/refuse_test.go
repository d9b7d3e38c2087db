package memstore_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/journal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// begun is the context of a call that begins before then: the call asks whether it is
// refused, asks for the error of its context, and locks.
type begun struct {
	context.Context
	then func()
}

func (b begun) Err() error { b.then(); return nil }

// Once Refuse has returned, no call changes a key, including those that began before it.
func TestRefuseDuringCall(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 9, Window: window.Sliding(time.Hour)})
	ops := []store.Op{
		{Space: store.NewSpace("", "a", "a", 0), Limit: limit, Key: []byte("k"), N: 1},
		{Space: store.NewSpace("", "b", "b", 0), Limit: limit, Key: []byte("k"), N: 1},
	}
	for name, call := range map[string]func(ctx context.Context, s *memstore.Store) error{
		"one op":  func(ctx context.Context, s *memstore.Store) error { return s.Decide(ctx, store.Take, ops[:1]) },
		"two ops": func(ctx context.Context, s *memstore.Store) error { return s.Decide(ctx, store.Take, ops) },
		"forget":  func(ctx context.Context, s *memstore.Store) error { return s.Forget(ctx, &ops[0]) },
	} {
		s := memstore.New(memstore.WithJournal(secret))
		t.Cleanup(func() { _ = s.Close() })
		if err := s.Decide(t.Context(), store.Take, ops); err != nil {
			t.Fatal(err)
		}
		changes := s.Journal().Changes()
		newCopy().read(changes.Next)
		refuse := func() { s.Journal().Refuse(store.ErrClosed) }
		if err := call(begun{t.Context(), refuse}, s); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: got error %v, want %v", name, err, store.ErrClosed)
		}
		after := newCopy()
		if after.read(changes.Next); len(after.parts) > 0 {
			t.Errorf("%s: got changes of %v after Refuse, want none", name, after.parts)
		}
	}
}

// Refuse waits for whoever has locked a stripe.
func TestRefuseWaits(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.WithJournal(secret))
	defer s.Close()
	limit := window.MustCompile(window.Limit{Quota: 9, Window: window.Sliding(time.Hour)})
	if _, err := one(t.Context(), s, store.Take, store.NewSpace("", "a", "a", 0), limit, "k", "", 1); err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{})
	s.Journal().Changes().Next(func(journal.Part, uint64, []uint64) { // under the lock
		go func() {
			s.Journal().Refuse(store.ErrClosed)
			close(refused)
		}()
		for range 1000 {
			runtime.Gosched()
		}
		select {
		case <-refused:
			t.Error("Refuse has returned while a stripe was locked")
		default:
		}
	})
	<-refused
}
