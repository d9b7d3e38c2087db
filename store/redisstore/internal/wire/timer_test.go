package wire_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// A decision has its whole time-out, and at most a millisecond more. What is asked
// later for the same decision gets what is left.
func TestDecisionsEnd(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, timeout := range []time.Duration{10 * ms, 50 * ms, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var timer wire.Timer
			for range 5 {
				began := time.Now()
				ctx, cancel := timer.Within(t.Context(), timeout)
				time.Sleep(timeout / 2)
				again, cancelAgain := timer.Within(ctx, timeout)
				if again != ctx {
					t.Error("got a second end for one decision")
				}
				if ctx.Err() != nil || wire.TimedOut(ctx) {
					t.Errorf("%v: got %v after half of the time", timeout, ctx.Err())
				}
				<-ctx.Done()
				took := time.Since(began)
				if took < timeout || took > timeout+ms {
					t.Errorf("%v: got an end after %v", timeout, took)
				}
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !wire.TimedOut(ctx) {
					t.Errorf("%v: got %v, want a time-out", timeout, ctx.Err())
				}
				cancelAgain()
				cancel()
				time.Sleep(300 * time.Microsecond)
			}
		})
	}
}

// A caller with less time than the time-out is no time-out, and WithTimeout sets
// another one.
func TestDecisionsOfCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer wire.Timer
		less, cancelLess := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancelLess()
		ctx, cancel := timer.Within(less, 50*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		if wire.TimedOut(ctx) {
			t.Error("the caller's end: got a time-out")
		}
		began := time.Now()
		ctx, cancelMore := timer.Within(wire.WithTimeout(t.Context(), 500*time.Millisecond), 50*time.Millisecond)
		defer cancelMore()
		<-ctx.Done()
		if got := time.Since(began); got != 500*time.Millisecond || !wire.TimedOut(ctx) {
			t.Errorf("another time-out: got an end after %v", got)
		}
		part, cancelPart := timer.Within(t.Context(), time.Second)
		defer cancelPart()
		time.Sleep(500 * time.Millisecond)
		began = time.Now()
		part, cancelPart = wire.WithinPart(part, time.Hour, 4, 5)
		defer cancelPart()
		<-part.Done()
		if got := time.Since(began); got != 400*time.Millisecond || !wire.TimedOut(part) {
			t.Errorf("a part: got an end after %v, want 400ms", got)
		}
	})
}
