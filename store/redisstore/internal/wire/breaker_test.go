package wire_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
	"github.com/weirhq/weir/window"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b wire.Breaker
		start := time.Now()
		admits := func() bool { return b.Admits(time.Since(start)) }
		want := func(want bool, when string) {
			t.Helper()
			if got := admits(); got != want {
				t.Errorf("%s: got admitted %v, want %v", when, got, want)
			}
		}
		silences := func(n int) {
			for range n {
				b.Silent(time.Since(start))
			}
		}
		want(true, "new")
		silences(4)
		b.Answered()
		silences(4)
		want(true, "four silences, an answer, four silences")
		silences(1)
		want(false, "five in a row")
		time.Sleep(99 * time.Millisecond)
		want(false, "99 ms later")
		time.Sleep(time.Millisecond)
		want(true, "100 ms later: the trial")
		want(false, "beside the trial")
		silences(1)
		want(false, "the trial was silent")
		time.Sleep(100 * time.Millisecond)
		want(true, "the next trial")
		b.Answered()
		want(true, "after an answer")
		silences(4)
		want(true, "silences before the answer are forgotten")
	})
}

// One of many callers gets the trial.
func TestBreakerTrialIsOne(t *testing.T) {
	t.Parallel()
	var b wire.Breaker
	for range 5 {
		b.Silent(0)
	}
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			if b.Admits(time.Second) {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if got := admitted.Load(); got != 1 {
		t.Errorf("trials: got %d, want 1", got)
	}
}

func TestServerClock(t *testing.T) {
	t.Parallel()
	const ms = window.Instant(1000)
	var c wire.ServerClock
	for _, step := range []struct {
		server window.Instant
		now    time.Duration
		want   window.Instant // at the same time
		why    string
	}{
		{500 * ms, 0, 500 * ms, "the first answer"},
		{508 * ms, 10 * time.Millisecond, 510 * ms, "one that took longer says less"},
		{523 * ms, 20 * time.Millisecond, 523 * ms, "one that came quicker says more"},
		{503 * ms, 30 * time.Millisecond, 533 * ms, "set back: not believed yet"},
		{10503 * ms, 10030 * time.Millisecond, 10503 * ms, "not contradicted in 10 s: believed"},
		{99999 * ms, 10031 * time.Millisecond, 99999 * ms, "set forward: believed at once"},
	} {
		c.Learn(step.server, step.now)
		if got := c.At(step.now); got != step.want {
			t.Errorf("%s: got %d, want %d", step.why, got, step.want)
		}
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"123456789": 0x31c3, "foo": 12182, "{foo}bar": 12182, "x{foo}{bar}": 12182, "": 0,
		"{}foo": 9500, "foo{": wire.SlotOf([]byte("foo{")), "{{foo}}": wire.SlotOf([]byte("{foo")),
	} {
		if got := wire.SlotOf([]byte(key)); got != want {
			t.Errorf("slot of %q: got %d, want %d", key, got, want)
		}
	}
}
