package rate

import "time"

// A Reservation holds tokens that [Limiter.Reserve] has taken for its caller. The caller
// waits for Delay and then acts, or cancels the reservation. It belongs to one goroutine at
// a time.
type Reservation struct {
	ok      bool
	limiter *Limiter
	limit   Limit     // of the limiter when the tokens were taken
	tokens  int       // those that Cancel may give back; guarded by limiter.mu
	at      time.Time // when the holder may act
}

// OK reports whether the tokens were taken. If not, Delay is [InfDuration], and Cancel does
// nothing.
func (r *Reservation) OK() bool {
	return r.ok
}

// Delay returns DelayFrom(time.Now()).
func (r *Reservation) Delay() time.Duration {
	return r.DelayFrom(time.Now())
}

// DelayFrom returns how long after t the holder may act: 0 if that is at t or before, and
// [InfDuration] if the reservation is not OK.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(0, r.at.Sub(t))
}

// Cancel calls CancelAt(time.Now()).
func (r *Reservation) Cancel() {
	r.CancelAt(time.Now())
}

// CancelAt gives the tokens back, because the holder does not act. It does nothing if the
// holder could have acted before t. The tokens that later reservations have taken are not
// given back, because those reservations wait for them already. After tokens were given
// back, another call does nothing.
func (r *Reservation) CancelAt(t time.Time) {
	if !r.ok {
		return
	}
	l := r.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.tokens <= 0 || l.limit == Inf || r.at.Before(t) {
		return
	}
	back := float64(r.tokens)
	if later := l.lastEvent.Sub(r.at); later > 0 {
		back -= r.limit.tokens(later)
	}
	if back <= 0 {
		return
	}
	now, tokens := l.refilledLocked(t)
	l.newest, l.tokens = now, min(tokens+back, float64(l.burst))
	if r.at.Equal(l.lastEvent) {
		if before := r.at.Add(-r.limit.wait(float64(r.tokens))); !before.Before(t) {
			l.lastEvent = before
		}
	}
	r.tokens = 0
}
