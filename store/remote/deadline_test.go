package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// A decision has its whole time-out, and at most a millisecond more. What is asked
// later for the same decision gets what is left.
func TestDecisionsEnd(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, timeout := range []time.Duration{10 * ms, 50 * ms, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			for range 5 {
				began := time.Now()
				ctx, cancel := remote.Within(t.Context(), timeout)
				time.Sleep(timeout / 2)
				again, cancelAgain := remote.Within(ctx, timeout)
				if again != ctx {
					t.Error("got a second end for one decision")
				}
				if ctx.Err() != nil || remote.TimedOut(ctx) {
					t.Errorf("%v: got %v after half of the time", timeout, ctx.Err())
				}
				<-ctx.Done()
				took := time.Since(began)
				if took < timeout || took > timeout+ms {
					t.Errorf("%v: got an end after %v", timeout, took)
				}
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !remote.TimedOut(ctx) {
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
		less, cancelLess := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancelLess()
		ctx, cancel := remote.Within(less, 50*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		if remote.TimedOut(ctx) {
			t.Error("the caller's end: got a time-out")
		}
		began := time.Now()
		ctx, cancelMore := remote.Within(remote.WithTimeout(t.Context(), 500*time.Millisecond), 50*time.Millisecond)
		defer cancelMore()
		<-ctx.Done()
		if got := time.Since(began); got < 500*time.Millisecond || got > 501*time.Millisecond || !remote.TimedOut(ctx) {
			t.Errorf("another time-out: got an end after %v, want 500ms, and a millisecond more at most", got)
		}
		part, cancelPart := remote.Within(t.Context(), time.Second)
		defer cancelPart()
		time.Sleep(500 * time.Millisecond)
		began = time.Now()
		part, cancelPart = remote.WithinPart(part, time.Hour, 4, 5)
		defer cancelPart()
		<-part.Done()
		if got := time.Since(began); got < 400*time.Millisecond || got > 401*time.Millisecond || !remote.TimedOut(part) {
			t.Errorf("a part: got an end after %v, want 400ms, and a millisecond more at most", got)
		}
	})
}

// A decision with a long time-out ends with the context of its caller too, whether
// something waits for it by then or looks at it later. It has the caller's values.
func TestDecisionsEndWithTheirCallers(t *testing.T) {
	t.Parallel()
	type key struct{}
	for _, looks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			caller, leave := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			ctx, cancel := remote.Within(caller, time.Second)
			defer cancel()
			if end, ok := ctx.Deadline(); !ok || time.Until(end) < time.Second {
				t.Errorf("got the deadline %v, want one in a second", end)
			}
			child := ctx
			if looks {
				if got := ctx.Value(key{}); got != "value" {
					t.Errorf("got the value %v, want that of the caller", got)
				}
				inner, cancelChild := context.WithTimeout(ctx, time.Minute)
				defer cancelChild()
				child = inner
			}
			leave()
			if !errors.Is(ctx.Err(), context.Canceled) || remote.TimedOut(ctx) {
				t.Errorf("got %v, want it cancelled", ctx.Err())
			}
			<-ctx.Done()
			if <-child.Done(); !errors.Is(child.Err(), context.Canceled) {
				t.Errorf("a context in it: got %v, want it cancelled", child.Err())
			}
		})
	}
}

// The time-out of a decision that was looked at only when it was over is one still. Answers that
// have arrived meanwhile get some time to be read.
func TestDecisionsThatAreOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := remote.Within(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * time.Second)
		began := time.Now()
		for range 2 {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !remote.TimedOut(ctx) {
				t.Errorf("got %v, want a time-out", ctx.Err())
			}
			<-ctx.Done()
		}
		if got := time.Since(began); got != 10*time.Millisecond {
			t.Errorf("got an end after %v more, want 10ms", got)
		}
	})
}
