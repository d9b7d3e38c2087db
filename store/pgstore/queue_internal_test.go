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

// A caller claims an idle lane, unless requests wait or a caller was late: only a transaction in time allows
// claims again.
func TestClaims(t *testing.T) {
	t.Parallel()
	var q queue
	l := idle(&q)
	if got := q.claim(); got != l {
		t.Fatal("got no lane, want the idle one")
	}
	if q.claim() != nil {
		t.Error("got a lane twice")
	}
	q.release(l, true)
	if <-l.wake; q.claim() != nil { // it was woken, to connect again
		t.Error("got a lane that does not rest")
	}
	if q.rest(l); q.claim() != nil {
		t.Error("got a lane after a late call")
	}
	if q.inTime(); q.claim() != l {
		t.Error("got no lane, want the idle one again")
	}
	q.requests = append(q.requests, &request{})
	if q.release(l, false); q.claim() != nil {
		t.Error("got a lane while a request waits")
	}
}
