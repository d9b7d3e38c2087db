package pgstore

import (
	"testing"
	"testing/synctest"
	"time"
)

// No decision waits for Changed, whatever that does.
func TestNoDecisionWaitsForChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := 0
		s := newStore(&Config{Timeout: 100 * time.Millisecond, Changed: func(Change) { told++; time.Sleep(time.Minute) }})
		s.server.Breaker.Trip()
		began := time.Now()
		s.heard(t.Context(), true, 0)
		if took := time.Since(began); took > 0 {
			t.Errorf("got an answer after %v, want at once", took)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if told == 0 {
			t.Error("got no change, want that the server was unavailable")
		}
	})
}
