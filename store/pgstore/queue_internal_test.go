package pgstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// idle returns a lane that rests in q. It has no connection.
func idle(q *queue) *lane {
	l := &lane{wake: make(chan struct{}, 1), moved: true}
	q.rest(l)
	return l
}

// The lane that was used last gets the next request.
func TestLastLaneFirst(t *testing.T) {
	t.Parallel()
	var q queue
	first, last := idle(&q), idle(&q)
	q.add(&request{})
	if len(first.wake) != 0 || len(last.wake) != 1 {
		t.Errorf("got %d, %d wake-ups, want one of the last lane", len(first.wake), len(last.wake))
	}
}

// A caller that has left a read gets nothing of what a lane reads meanwhile.
func TestReadThatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := Parse("postgres://localhost/weir")
		if err != nil {
			t.Fatal(err)
		}
		s := newStore(&c)
		s.link.connected()
		limit := window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Hour)})
		state, _ := limit.Take(nil, 1, window.Hits{N: 3})
		ctx, leave := context.WithCancel(t.Context())
		s.running.Go(func() {
			op := store.Op{Space: store.NewSpace("", "id", "rule", 0), Limit: limit, Key: []byte("ann")}
			if got, err := s.Read(ctx, &op); err == nil || got.Used != 0 {
				t.Errorf("got %d hits and the error %v, want an error alone", got.Used, err)
			}
		})
		synctest.Wait()
		r := s.queue.take(nil, 1)[0]
		r.phase.Store(decided)
		s.running.Go(func() { r.change(state, 1) })
		synctest.Wait()
		leave()
		synctest.Wait()
		s.finish(r, nil)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
