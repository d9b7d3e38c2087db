package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/store"
)

// Read returns the numbers and counts nothing. Forget drops one key, and may be
// called again.
func readAndForget(s *stage) {
	limit := hourly(5)
	op := hit("s", limit, "k")
	if r := s.read(op); r.Used != 0 || r.Remaining != 5 || r.ResetAfter != 0 {
		s.Errorf("unknown key: got %+v, want none used", r)
	}
	s.do(store.Take, op, hit("s", limit, "other"))
	s.at(time.Minute)
	r := s.read(op)
	if r.At != start.Add(time.Minute) || r.Used != 1 || r.Remaining != 4 || r.ResetAfter != 59*time.Minute {
		s.Errorf("got %+v, want 1 used at %v, reset after 59m", r, start.Add(time.Minute))
	}
	if want := s.one(store.Check, times(0, op)); r.Result != want {
		s.Errorf("got %+v, want what a check of no hits answers: %+v", r.Result, want)
	}
	s.used(1, op)
	for range 2 {
		if err := s.Store.Forget(s.Context(), &op); err != nil {
			s.Errorf("forget: got error %v", err)
		}
		s.used(0, op)
	}
	s.used(1, hit("s", limit, "other"))
}

// A call with two ops on one key is refused with ErrRepeated, whatever the
// limits, and counts nothing.
func repeatedKey(s *stage) {
	limit := hourly(5)
	same, other := hit("s", limit, "k"), hit("s", limit, "other")
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
		for _, ops := range [][]store.Op{
			{same, same},
			{same, other, hit("t", limit, "k"), hit("s", hourly(7), "k")},
		} {
			if err := store.Do(s.Context(), s.Store, verb, ops); !errors.Is(err, store.ErrRepeated) {
				s.Errorf("%v of %d ops: got error %v, want %v", verb, len(ops), err, store.ErrRepeated)
			}
		}
	}
	s.used(0, same, other, hit("t", limit, "k"))
}

// A call whose context is done fails with the error of the context and counts
// nothing.
func contextDone(s *stage) {
	op := hit("s", hourly(5), "k")
	s.one(store.Take, op)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
		if err := store.Do(ctx, s.Store, verb, []store.Op{op}); !errors.Is(err, context.Canceled) {
			s.Errorf("%v: got error %v, want %v", verb, err, context.Canceled)
		}
	}
	if _, err := s.Store.Read(ctx, &op); !errors.Is(err, context.Canceled) {
		s.Errorf("read: got error %v, want %v", err, context.Canceled)
	}
	if err := s.Store.Forget(ctx, &op); !errors.Is(err, context.Canceled) {
		s.Errorf("forget: got error %v, want %v", err, context.Canceled)
	}
	s.used(1, op)
}

// Close may be called twice. Calls after it return ErrClosed.
func closing(s *stage) {
	op := hit("s", hourly(5), "k")
	s.one(store.Take, op)
	for range 2 {
		if err := s.Store.Close(); err != nil {
			s.Errorf("close: got error %v, want none", err)
		}
	}
	err := store.Do(s.Context(), s.Store, store.Take, []store.Op{op})
	if !errors.Is(err, store.ErrClosed) {
		s.Errorf("take: got error %v, want %v", err, store.ErrClosed)
	}
	if _, err := s.Store.Read(s.Context(), &op); !errors.Is(err, store.ErrClosed) {
		s.Errorf("read: got error %v, want %v", err, store.ErrClosed)
	}
	if err := s.Store.Forget(s.Context(), &op); !errors.Is(err, store.ErrClosed) {
		s.Errorf("forget: got error %v, want %v", err, store.ErrClosed)
	}
}
