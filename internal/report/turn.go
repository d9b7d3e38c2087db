package report

import "time"

// The Reporters of a group take turns to ask the store: the calls of others need the places of calls in flight. In a turn a
// Reporter reports a batch.

// turn waits for the turn of r, the first to come first. It returns false if r is closed and end has passed.
func (r *Reporter) turn(end time.Time) bool {
	select {
	case r.group.turns <- struct{}{}:
		return true
	case <-r.stop:
	}
	select {
	case r.group.turns <- struct{}{}:
		return true
	case <-time.After(time.Until(end)):
		return false
	}
}

// pass ends the turn of r.
func (r *Reporter) pass() { <-r.group.turns }
