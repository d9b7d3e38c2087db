package pgstore

import "testing"

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
