package rate

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// Limit is a number of events per second. A Limit of 0 or less refills nothing: events are
// admitted until the first burst is used up.
type Limit float64

// Inf is the limit that admits all events, whatever the burst is.
const Inf = Limit(math.MaxFloat64)

// InfDuration is the delay of a [Reservation] that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Every returns the limit of one event per interval. It returns [Inf] if interval is 0 or
// negative.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return 1 / Limit(interval.Seconds())
}

// tokens returns how many tokens accumulate in d. A limit that is not a number counts as 0.
func (limit Limit) tokens(d time.Duration) float64 {
	if limit > 0 {
		return d.Seconds() * float64(limit)
	}
	return 0
}

// wait returns how long it takes until so many tokens have accumulated, rounded down to the
// nanosecond. The admitted events are early by the fraction that is cut off, but the tokens
// are not rounded, so that the fractions do not add up.
func (limit Limit) wait(tokens float64) time.Duration {
	if limit > 0 {
		if ns := tokens / float64(limit) * float64(time.Second); ns < 1<<63 {
			return time.Duration(ns)
		}
	}
	return InfDuration
}

// A Limiter admits events at an average rate with a burst. It is a token bucket: it holds
// up to burst tokens, starts full, and is refilled with limit tokens a second. An event
// takes a token, n events take n. Within any d seconds at most burst + limit·d events are
// admitted.
//
// If there is no token, [Limiter.Allow] refuses the event, [Limiter.Wait] waits for a
// token, and [Limiter.Reserve] takes a future token and tells its caller how long to wait.
// Most programs that work through a queue want Wait; servers, which refuse what is too
// much, want Allow.
//
// AllowN, ReserveN and the methods whose names end in At are given the time. The others
// read the clock. A time before the newest one at which the limiter changed counts as the
// newest.
//
// The zero value admits no events. NewLimiter makes other limiters. A Limiter is safe for
// concurrent use, and must not be copied.
type Limiter struct {
	mu     sync.Mutex
	limit  Limit
	burst  int
	tokens float64 // at newest; negative if reservations took tokens of the future

	// newest is the latest time at which tokens, limit or burst changed. Invariant: it
	// never goes back, because what was refilled until then would be refilled again.
	newest time.Time

	// lastEvent is the time of the latest reservation, which may be in the future.
	lastEvent time.Time
}

// NewLimiter returns a limiter with burst tokens in it, which is refilled at the rate of
// limit.
func NewLimiter(limit Limit, burst int) *Limiter {
	return &Limiter{limit: limit, burst: burst, tokens: float64(burst)}
}

// Limit returns the rate at which the limiter is refilled.
func (l *Limiter) Limit() Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// Burst returns the most events that a single call can admit, and the most tokens that the
// limiter holds. A limiter with a burst of 0 admits nothing, unless its limit is [Inf].
func (l *Limiter) Burst() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.burst
}

// Tokens returns TokensAt(time.Now()).
func (l *Limiter) Tokens() float64 {
	return l.TokensAt(time.Now())
}

// TokensAt returns the number of tokens at t. It is negative if reservations have taken
// tokens that are not there yet.
func (l *Limiter) TokensAt(t time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, tokens := l.refilledLocked(t)
	return tokens
}

// SetLimit calls SetLimitAt(time.Now(), limit).
func (l *Limiter) SetLimit(limit Limit) {
	l.SetLimitAt(time.Now(), limit)
}

// SetLimitAt changes the limit at t. The tokens stay, and so do the times of the
// reservations that were made before: the new limit applies to those made after.
func (l *Limiter) SetLimitAt(t time.Time, limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest, l.tokens = l.refilledLocked(t)
	l.limit = limit
}

// SetBurst calls SetBurstAt(time.Now(), burst).
func (l *Limiter) SetBurst(burst int) {
	l.SetBurstAt(time.Now(), burst)
}

// SetBurstAt changes the burst at t. A greater burst adds no tokens at once; a smaller one
// takes away those above it.
func (l *Limiter) SetBurstAt(t time.Time, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest, l.tokens = l.refilledLocked(t)
	l.burst = burst
}

// Allow returns AllowN(time.Now(), 1).
func (l *Limiter) Allow() bool {
	return l.AllowN(time.Now(), 1)
}

// AllowN reports whether n events may happen at t. If so, it takes their tokens; otherwise
// it takes none.
func (l *Limiter) AllowN(t time.Time, n int) bool {
	_, ok := l.take(t, n, 0)
	return ok
}

// Reserve returns ReserveN(time.Now(), 1).
func (l *Limiter) Reserve() *Reservation {
	return l.ReserveN(time.Now(), 1)
}

// ReserveN takes n tokens at t, including tokens that are not there yet, and returns a
// reservation that says how long its holder must wait before the n events may happen. The
// reservation is not OK, and nothing is taken, if n is greater than the burst.
func (l *Limiter) ReserveN(t time.Time, n int) *Reservation {
	r, _ := l.take(t, n, InfDuration)
	return &r
}

// Wait returns WaitN(ctx, 1).
func (l *Limiter) Wait(ctx context.Context) error {
	return l.WaitN(ctx, 1)
}

// WaitN waits until n events may happen. It returns an error, and takes no tokens, if n is
// greater than the burst, if ctx is done before the wait is over, or at once if the wait
// would end after the deadline of ctx. The burst does not matter if the limit is [Inf].
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		if burst, exceeded := l.exceeds(n); exceeded {
			return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, burst)
		}
		return err
	}
	now, most := time.Now(), InfDuration
	if deadline, ok := ctx.Deadline(); ok {
		most = deadline.Sub(now)
	}
	r, ok := l.take(now, n, most)
	if !ok {
		if burst, exceeded := l.exceeds(n); exceeded {
			return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, burst)
		}
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", n)
	}
	delay := r.DelayFrom(now)
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

// exceeds returns the burst, and reports whether n events are too many for a single call.
func (l *Limiter) exceeds(n int) (burst int, exceeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.burst, n > l.burst && l.limit != Inf
}

// take takes n tokens at t, unless the events would have to wait for longer than most after
// t.
func (l *Limiter) take(t time.Time, n int, most time.Duration) (Reservation, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == Inf {
		return Reservation{ok: true, limiter: l, at: t}, true // took no token
	}
	now, tokens := l.refilledLocked(t)
	tokens -= float64(n)
	var wait time.Duration
	if tokens < 0 {
		wait = l.limit.wait(-tokens)
	}
	if wait > 0 && now.After(t) {
		wait += min(now.Sub(t), InfDuration-wait) // the tokens are there so long after now, not after t
	}
	if n > l.burst || wait > most {
		return Reservation{}, false
	}
	l.newest, l.tokens, l.lastEvent = now, tokens, t.Add(wait)
	return Reservation{ok: true, limiter: l, limit: l.limit, tokens: n, at: l.lastEvent}, true
}

// refilledLocked returns the later of t and the newest time, and the tokens at it.
func (l *Limiter) refilledLocked(t time.Time) (now time.Time, tokens float64) {
	now, tokens = l.newest, l.tokens
	if elapsed := t.Sub(now); elapsed > 0 {
		now, tokens = t, tokens+l.limit.tokens(elapsed)
	}
	if burst := float64(l.burst); tokens > burst {
		tokens = burst
	}
	return now, tokens
}
