package report

import "time"

// The Reporters of a group take turns to ask the store: the calls of others need the places of calls in flight. In a turn a
// Reporter reports a batch.

// turning returns the semaphore of the turns.
func (g *Group) turning() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turns == nil {
		g.turns = make(chan struct{}, 1)
	}
	return g.turns
}

// turn waits for the turn of r, the first to come first. It returns false if r is closed and end has passed.
func (r *Reporter) turn(end time.Time) bool {
	select {
	case r.turns <- struct{}{}:
		return true
	case <-r.stop:
	}
	select {
	case r.turns <- struct{}{}:
		return true
	case <-time.After(time.Until(end)):
		return false
	}
}

// pass ends the turn of r.
func (r *Reporter) pass() { <-r.turns }
