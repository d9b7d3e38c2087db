package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

func peekAndForget(s *stage) {
	limit := hourly(5)
	op := hit("s", limit, "k")
	if state := s.peek(op); len(state) != 0 {
		s.Errorf("unknown key: got state %v, want none", state)
	}
	s.do(store.Take, op, hit("s", limit, "other"))
	s.at(time.Minute)
	state, now, err := s.Store.Peek(s.Context(), &op)
	if err != nil || now != start.Add(time.Minute) {
		s.Errorf("peek: got instant %v and error %v, want %v", now, err, start.Add(time.Minute))
	}
	want := limit.Check(state, now, window.Hits{N: 1})
	if got := s.one(store.Check, op); got != want || want.Used != 1 {
		s.Errorf("check: got %+v, want what the peeked state gives: %+v", got, want)
	}
	clear(state) // it is a copy
	s.used(1, op)
	for range 2 {
		if err := s.Store.Forget(s.Context(), &op); err != nil {
			s.Errorf("forget: got error %v", err)
		}
		s.used(0, op)
	}
	s.used(1, hit("s", limit, "other"))
}

func repeatedKey(s *stage) {
	limit := hourly(5)
	same, other := hit("s", limit, "k"), hit("s", limit, "other")
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
		for _, ops := range [][]store.Op{
			{same, same},
			{same, other, hit("t", limit, "k"), hit("s", hourly(7), "k")},
		} {
			if err := s.Store.Do(s.Context(), verb, ops); !errors.Is(err, store.ErrRepeated) {
				s.Errorf("%v of %d ops: got error %v, want %v", verb, len(ops), err, store.ErrRepeated)
			}
		}
	}
	s.used(0, same, other, hit("t", limit, "k"))
}

func contextDone(s *stage) {
	op := hit("s", hourly(5), "k")
	s.one(store.Take, op)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for _, verb := range []store.Verb{store.Check, store.Take, store.Record, store.Refund} {
		if err := s.Store.Do(ctx, verb, []store.Op{op}); !errors.Is(err, context.Canceled) {
			s.Errorf("%v: got error %v, want %v", verb, err, context.Canceled)
		}
	}
	if _, _, err := s.Store.Peek(ctx, &op); !errors.Is(err, context.Canceled) {
		s.Errorf("peek: got error %v, want %v", err, context.Canceled)
	}
	if err := s.Store.Forget(ctx, &op); !errors.Is(err, context.Canceled) {
		s.Errorf("forget: got error %v, want %v", err, context.Canceled)
	}
	s.used(1, op)
}

func closing(s *stage) {
	op := hit("s", hourly(5), "k")
	s.one(store.Take, op)
	for range 2 {
		if err := s.Store.Close(); err != nil {
			s.Errorf("close: got error %v, want none", err)
		}
	}
	err := s.Store.Do(s.Context(), store.Take, []store.Op{op})
	if !errors.Is(err, store.ErrClosed) {
		s.Errorf("take: got error %v, want %v", err, store.ErrClosed)
	}
	if _, _, err := s.Store.Peek(s.Context(), &op); !errors.Is(err, store.ErrClosed) {
		s.Errorf("peek: got error %v, want %v", err, store.ErrClosed)
	}
	if err := s.Store.Forget(s.Context(), &op); !errors.Is(err, store.ErrClosed) {
		s.Errorf("forget: got error %v, want %v", err, store.ErrClosed)
	}
}
