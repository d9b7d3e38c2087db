package rate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/compat/rate"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a number of milliseconds after the start.
func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// TestTimeGoesBack follows a limiter whose callers' times are out of order.
func TestTimeGoesBack(t *testing.T) {
	t.Parallel()
	l := rate.NewLimiter(10, 3)
	for i, step := range []struct {
		ms     int
		tokens float64
		ok     bool
	}{
		{100, 3, true},
		{0, 2, true}, // there are tokens at the newest time, 100 ms
		{0, 1, true},
		{0, 0, false},
		{100, 0, false}, // nothing is refilled for the time between 0 and 100 ms again
		{0, 0, false},
		{150, 0.5, false},
		{200, 1, true},
		{100, 0, false},
	} {
		if got := l.TokensAt(at(step.ms)); got != step.tokens {
			t.Errorf("step %d, at %d ms: got %v tokens, want %v", i, step.ms, got, step.tokens)
		}
		if got := l.AllowN(at(step.ms), 1); got != step.ok {
			t.Errorf("step %d, at %d ms: got %t, want %t", i, step.ms, got, step.ok)
		}
	}
}

// TestSettersGoBack changes the limit and the burst at times before the newest one.
func TestSettersGoBack(t *testing.T) {
	t.Parallel()
	l := rate.NewLimiter(10, 2)
	l.AllowN(at(1000), 2)
	l.SetLimitAt(at(0), 10)
	l.SetBurstAt(at(0), 2)
	if got := l.TokensAt(at(1000)); got != 0 {
		t.Errorf("got %v tokens, want 0: the second before was refilled already", got)
	}
	r := l.ReserveN(at(1000), 1)
	r.CancelAt(at(0))
	if got := l.TokensAt(at(1000)); got != 0 {
		t.Errorf("after a cancel, got %v tokens, want 0", got)
	}
}

// FuzzNeverMore calls a limiter at times that go up and down. In no interval are more
// events admitted than its length allows.
func FuzzNeverMore(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		limit, burst := rate.Limit(math.Exp(rnd.Float64()*12-2)), 1+rnd.IntN(10)
		step := time.Duration(float64(time.Second) / float64(limit))
		l := rate.NewLimiter(limit, burst)
		l.SetLimitAt(start, limit) // so that it has seen the start
		type event struct {
			at        time.Time
			n         int
			held      *rate.Reservation
			cancelled bool
		}
		var events []*event
		now, newest := start, start
		for range 200 {
			now = now.Add(time.Duration(rnd.Int64N(int64(step))) - step/3)
			if rnd.IntN(20) == 0 {
				now = now.Add(time.Duration(rnd.Int64N(int64(20*step))) - 10*step)
			}
			n := 1 + rnd.IntN(burst)
			switch rnd.IntN(4) {
			case 0, 1:
				if l.AllowN(now, n) {
					newest = later(newest, now)
					events = append(events, &event{at: newest, n: n})
				}
			case 2:
				r := l.ReserveN(now, n)
				newest = later(newest, now)
				events = append(events, &event{at: later(newest, now.Add(r.DelayFrom(now))), n: n, held: r})
			case 3:
				if len(events) == 0 {
					continue
				}
				e := events[rnd.IntN(len(events))]
				if e.held == nil || e.at.Before(newest) || e.at.Before(now) {
					continue
				}
				before := l.TokensAt(now)
				e.held.CancelAt(now)
				if e.cancelled = true; l.TokensAt(now) != before {
					newest = later(newest, now)
				}
			}
		}
		events = slices.DeleteFunc(events, func(e *event) bool { return e.cancelled })
		slices.SortStableFunc(events, func(a, b *event) int { return a.at.Compare(b.at) })
		for i, first := range events {
			admitted := 0
			for _, last := range events[i:] {
				admitted += last.n
				// A time is rounded down to the nanosecond.
				if most := float64(burst) + float64(limit)*(last.at.Sub(first.at)+1).Seconds() + 1e-6; float64(admitted) > most {
					t.Fatalf("limit %v, burst %d: %d events within %v, want at most %v", limit, burst, admitted, last.at.Sub(first.at), most)
				}
			}
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestContended has many goroutines read the clock and then ask for the lock.
func TestContended(t *testing.T) {
	t.Parallel()
	const limit, burst = 1e5, 10
	l := rate.NewLimiter(limit, burst)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range 50 {
		wg.Go(func() {
			for range 2000 {
				if l.Allow() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got, most := float64(admitted.Load()), burst+limit*time.Since(began).Seconds(); got > most {
		t.Errorf("got %v events, want at most %v", got, most)
	}
}

// TestOddLimits gives limits that are the least, the greatest and no number.
func TestOddLimits(t *testing.T) {
	t.Parallel()
	// At Every(math.MaxInt64), a token takes 2^63 ns, 1 ns more than a duration can be.
	for _, limit := range []rate.Limit{0, -1, rate.Every(math.MaxInt64), rate.Limit(math.SmallestNonzeroFloat64), rate.Limit(math.NaN()), rate.Limit(math.Inf(-1))} {
		l := rate.NewLimiter(limit, 1)
		for i, want := range []bool{true, false, false} {
			if got := l.AllowN(start, 1); got != want {
				t.Errorf("limit %v: call %d: got %t, want %t", limit, i, got, want)
			}
		}
		if r := l.ReserveN(at(2), 1); !r.OK() || r.DelayFrom(at(2)) < 290*365*24*time.Hour {
			t.Errorf("limit %v: got OK %t and a delay of %v, want centuries", limit, r.OK(), r.DelayFrom(at(2)))
		}
		l.SetLimitAt(at(2), 10)
		if l.AllowN(at(2), 1) {
			t.Errorf("limit %v: got an event admitted when the limit was replaced", limit)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	l := rate.NewLimiter(1, 1000)
	ctx := t.Context()
	for name, call := range map[string]func(){
		"Allow":  func() { l.Allow() },
		"AllowN": func() { l.AllowN(start, 2) },
		"Wait":   func() { _ = l.Wait(ctx) },
		"Tokens": func() { l.Tokens() },
	} {
		if got := testing.AllocsPerRun(100, call); got != 0 {
			t.Errorf("%s: got %v allocations, want none", name, got)
		}
	}
}
