package xtime_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	xtime "golang.org/x/time/rate"

	weir "github.com/weirhq/weir/compat/rate"
)

// The cases in this file follow the tests of x/time v0.16.0 by the public API alone. Those
// in which time goes back are in differ_test.go.

func TestEvery(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{
		math.MinInt64, -1, 0, 1, time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second,
		2500 * time.Millisecond, 3 * time.Second, 10 * time.Second, math.MaxInt64,
	} {
		if got, want := weir.Every(interval), xtime.Every(interval); float64(got) != float64(want) {
			t.Errorf("Every(%v): got %v, want %v", interval, got, want)
		}
	}
	if weir.Limit(10) == weir.Inf {
		t.Error("a limit of 10 is Inf")
	}
}

// TestFirst allows the first event at limits that floating-point numbers do not have
// exactly (golang/go#34861), and no further event at tiny ones (golang/go#71154).
func TestFirst(t *testing.T) {
	both(t, func(t *testing.T, create func(float64, int) limiter) {
		for _, limit := range []float64{0, 1e-300, 1e-10, 0.1, 0.7692307692307693, 10} {
			l := create(limit, 1)
			if !l.AllowN(start, 1) || l.AllowN(start, 1) || l.AllowN(start.Add(1), 1) {
				t.Errorf("limit %v: got not exactly the first event", limit)
			}
		}
	})
}

// A wait has the deadline of a context, the time after which it is cancelled, or neither.
type wait struct {
	n                int
	deadline, cancel time.Duration
	want             string // the error
	took             time.Duration
}

func TestWait(t *testing.T) {
	const ms = time.Millisecond
	both(t, func(t *testing.T, create func(float64, int) limiter) {
		for name, test := range map[string]struct {
			limit float64
			burst int
			waits []wait
		}{
			"simple": {10, 3, []wait{
				{n: 1, cancel: -1, want: "context canceled"},
				{n: 4, want: "rate: Wait(n=4) exceeds limiter's burst 3"},
				{n: 4, cancel: -1, want: "rate: Wait(n=4) exceeds limiter's burst 3"},
				{n: 2}, {n: 3, took: 200 * ms},
			}},
			"cancelled": {10, 3, []wait{
				{n: 2}, {n: 3, cancel: 100 * ms, want: "context canceled", took: 100 * ms}, {n: 2},
			}},
			"too late for its deadline": {10, 3, []wait{
				{n: 2, deadline: 100 * ms}, {n: 3, deadline: 100 * ms, want: "rate: Wait(n=3) would exceed context deadline"},
				{n: 3, deadline: 200 * ms, took: 200 * ms},
			}},
			"up to a time":   {10, 2, []wait{{n: 2, deadline: 100 * ms}, {n: 1, deadline: 100 * ms, took: 100 * ms}, {n: 2, deadline: 100 * ms, want: "rate: Wait(n=2) would exceed context deadline"}}},
			"without limit":  {inf, 0, []wait{{n: 3}}},
			"nothing":        {10, 0, []wait{{n: 0}, {n: 1, want: "rate: Wait(n=1) exceeds limiter's burst 0"}}},
			"without refill": {0, 1, []wait{{n: 1}, {n: 1, deadline: time.Hour, want: "rate: Wait(n=1) would exceed context deadline"}, {n: 1, cancel: 100 * ms, want: "context canceled", took: 100 * ms}}},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := create(test.limit, test.burst)
				for i, w := range test.waits {
					ctx, cancel := context.WithCancel(t.Context())
					if w.deadline > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), w.deadline)
					}
					if w.cancel < 0 {
						cancel()
					} else if w.cancel > 0 {
						time.AfterFunc(w.cancel, cancel)
					}
					began := time.Now()
					err := l.WaitN(ctx, w.n)
					cancel()
					if took := time.Since(began); took != w.took {
						t.Errorf("%s: wait %d: took %v, want %v", name, i, took, w.took)
					}
					if err == nil && w.want != "" || err != nil && err.Error() != w.want {
						t.Errorf("%s: wait %d: got %v, want %q", name, i, err, w.want)
					}
					if w.want == "context canceled" && !errors.Is(err, context.Canceled) {
						t.Errorf("%s: wait %d: the error is not that of the context", name, i)
					}
				}
			})
		}
	})
}

// TestWaitAfterZeroLimit replaces a limit of 0.
func TestWaitAfterZeroLimit(t *testing.T) {
	both(t, func(t *testing.T, create func(float64, int) limiter) {
		synctest.Test(t, func(t *testing.T) {
			l := create(0, 1)
			if !l.Allow() || l.Allow() {
				t.Error("got not exactly the first event")
			}
			l.SetLimit(10)
			began := time.Now()
			if err := l.Wait(t.Context()); err != nil || time.Since(began) != 100*time.Millisecond {
				t.Errorf("got %v after %v, want nil after 100ms", err, time.Since(began))
			}
		})
	})
}

// TestZeroValue uses limiters that no function has made.
func TestZeroValue(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]limiter{"weir": ofWeir{new(weir.Limiter)}, "xtime": ofXTime{new(xtime.Limiter)}} {
		if l.Limit() != 0 || l.Burst() != 0 || l.TokensAt(start) != 0 || l.AllowN(start, 1) || !l.AllowN(start, 0) {
			t.Errorf("%s: the zero value admits events", name)
		}
		if r := l.ReserveN(start, 1); r.OK() || r.DelayFrom(start) != weir.InfDuration {
			t.Errorf("%s: got a reservation with a delay of %v", name, r.DelayFrom(start))
		}
		l.SetLimitAt(at(0), 10)
		l.SetBurstAt(at(10), 2)
		if got := l.TokensAt(at(10)); got != 0 {
			t.Errorf("%s: got %v tokens, want 0", name, got)
		}
		if l.AllowN(at(11.5), 2) || !l.AllowN(at(12), 2) {
			t.Errorf("%s: got other than 2 tokens in 200 ms", name)
		}
	}
}

// TestSometimes lists the calls on which a function runs.
func TestSometimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		first, every int
		interval     time.Duration
		want         []int
	}{
		{0, 0, 0, []int{0}},
		{2, 0, 0, []int{0, 1}},
		{0, 2, 0, []int{0, 2, 4}},
		{2, 2, 0, []int{0, 1, 2, 4}},
		{0, 0, 2 * time.Second, []int{0, 2, 4}},
		{2, 4, 2 * time.Second, []int{0, 1, 3, 4}},
		{0, 0, math.MaxInt64, []int{0}},
		{-1, -1, -1, []int{0}},
	} {
		w := weir.Sometimes{First: test.first, Every: test.every, Interval: test.interval}
		x := xtime.Sometimes{First: test.first, Every: test.every, Interval: test.interval}
		for name, do := range map[string]func(func()){"weir": w.Do, "xtime": x.Do} {
			synctest.Test(t, func(t *testing.T) {
				var ran []int
				for i := range 6 {
					do(func() { ran = append(ran, i) })
					time.Sleep(time.Second)
				}
				if !slices.Equal(ran, test.want) {
					t.Errorf("%s: First %d, Every %d, Interval %v: ran on calls %v, want %v", name, test.first, test.every, test.interval, ran, test.want)
				}
			})
		}
	}
}

// TestSometimesPanics has the function panic: the call does not count, and the next one is
// not blocked.
func TestSometimesPanics(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(func()){"weir": new(weir.Sometimes).Do, "xtime": new(xtime.Sometimes).Do} {
		func() {
			defer func() { _ = recover() }()
			do(func() { panic("no") })
		}()
		ran := 0
		do(func() { ran++ })
		do(func() { ran++ })
		if ran != 1 {
			t.Errorf("%s: got %d runs after a panic, want 1", name, ran)
		}
	}
}
