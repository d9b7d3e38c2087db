package xtime_test

import (
	"math"
	"testing"
	"time"
)

// The cases in this file are those in which x/time/rate admits more than its limit. Each
// has a number that x/time/rate gets wrong; when a later version of it is right, the case
// belongs to those of both.
func differ(t *testing.T, f func(create func(float64, int) limiter) float64, weir, xtime float64) {
	t.Helper()
	t.Parallel()
	if got := f(newWeir); math.Abs(got-weir) > 1e-9 {
		t.Errorf("weir: got %v, want %v", got, weir)
	}
	if got := f(newXTime); math.Abs(got-xtime) > 1e-9 {
		t.Errorf("x/time: got %v, want %v", got, xtime)
	}
}

// admitted counts those of the times, in tenths of a second, at which l allows an event.
func admitted(l limiter, tenths ...float64) float64 {
	sum := 0.0
	for _, t := range tenths {
		if l.AllowN(at(t), 1) {
			sum++
		}
	}
	return sum
}

// TestContention is golang/go#71360. A thousand callers read the clock, a microsecond after
// each other, and then wait for the lock, which the newest and the oldest of them get in
// turn. In 101 such rounds, of a millisecond each, a limit of 10,000 a second with a burst
// of 10 admits 1,010 events.
func TestContention(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l, sum := create(10_000, 10), 0.0
		for round := range 101 {
			began := start.Add(time.Duration(round) * time.Millisecond)
			for i := range 1000 {
				late := time.Duration(i/2) * time.Microsecond
				if i%2 == 0 {
					late = time.Millisecond - late
				}
				if l.AllowN(began.Add(late), 1) {
					sum++
				}
			}
		}
		return sum
	}, 1010, 86_759)
}

// TestReservationsOfManyGoroutines is golang/go#65508. Pairs of goroutines reserve events
// at 200,000 a second, and the one that read the clock first gets the lock last. 20,000
// events need 100 ms.
func TestReservationsOfManyGoroutines(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l, last := create(200_000, 1), start
		for pair := range 10_000 {
			first := start.Add(time.Duration(pair) * time.Microsecond)
			for _, now := range []time.Time{first.Add(5 * time.Microsecond), first} {
				if act := now.Add(l.ReserveN(now, 1).DelayFrom(now)); act.After(last) {
					last = act
				}
			}
		}
		return last.Sub(start).Seconds()
	}, 0.1, 0.05)
}

// TestAlternate has two callers whose times are two seconds apart, in turn
// (golang/go#56287).
func TestAlternate(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		return admitted(create(1, 2), 20, 0, 20, 0, 20, 0, 20, 0, 20, 0)
	}, 2, 10)
}

// TestAllowJumpsBack is a test of x/time, in which a step back and forth gives a token.
func TestAllowJumpsBack(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		return admitted(create(10, 3), 1, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2)
	}, 4, 5)
}

// reserve reserves n events at a time, and returns when they may happen, in tenths of a
// second.
func reserve(l limiter, tenth float64, n int) float64 {
	return tenth + l.ReserveN(at(tenth), n).DelayFrom(at(tenth)).Seconds()*10
}

// TestReserveJumpsBack is a test of x/time, which says there that it violates the limit and
// the burst.
func TestReserveJumpsBack(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(10, 2)
		reserve(l, 1, 2)
		reserve(l, 0, 1)
		return reserve(l, 2, 2)
	}, 4, 3)
}

// TestCancelJumpsBack is another test of x/time that says so.
func TestCancelJumpsBack(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(10, 2)
		reserve(l, 1, 2)
		r := l.ReserveN(at(1), 2)
		reserve(l, 1, 1)
		r.CancelAt(at(0))
		return reserve(l, 1, 2)
	}, 5, 4)
}

// TestBurstJumpsBack is the test of x/time for a greater burst, in which the last
// reservation is made at an earlier time.
func TestBurstJumpsBack(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(5, 2)
		reserve(l, 0, 2)
		reserve(l, 0, 2)
		l.SetBurstAt(at(3), 4)
		return reserve(l, 0, 4)
	}, 12, 9)
}

// TestCancelTwice gives back the tokens of a reservation twice.
func TestCancelTwice(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(10, 2)
		l.AllowN(start, 2)
		r := l.ReserveN(start, 2)
		r.CancelAt(at(1))
		r.CancelAt(at(1))
		return l.TokensAt(at(1))
	}, 1, 2)
}

// TestCancelAfterHigherLimit gives back more than the reservation took.
func TestCancelAfterHigherLimit(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(10, 10)
		l.AllowN(start, 10)
		r := l.ReserveN(start, 5)
		l.SetLimitAt(start, 1000)
		l.ReserveN(start, 5)
		r.CancelAt(start)
		return l.TokensAt(start)
	}, -5, -0.1)
}

// TestCancelFromNoLimit gives back tokens that the reservation did not take.
func TestCancelFromNoLimit(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(10, 5)
		l.AllowN(start, 5)
		l.SetLimitAt(start, inf)
		r := l.ReserveN(start, 5)
		l.SetLimitAt(start, 10)
		r.CancelAt(start)
		return l.TokensAt(start)
	}, 0, 5)
}

// TestNoNumber has a limit that is not a number, and is replaced after ten events.
func TestNoNumber(t *testing.T) {
	differ(t, func(create func(float64, int) limiter) float64 {
		l := create(math.NaN(), 1)
		sum := admitted(l, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		l.SetLimitAt(at(9), 10)
		return sum + admitted(l, 9, 9, 9)
	}, 1, 13)
}

// TestLongestWait needs 2^63 ns for the next token, 1 ns more than a duration can be.
// x/time converts it to an integer, and what this gives depends on the processor.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	const perCentury = 1 / (float64(1<<63) / 1e9)
	if got := admitted(newWeir(perCentury, 1), 0, 0, 0, 0); got != 1 {
		t.Errorf("weir: got %v events, want 1", got)
	}
	t.Logf("x/time: got %v events, want 1", admitted(newXTime(perCentury, 1), 0, 0, 0, 0))
}
