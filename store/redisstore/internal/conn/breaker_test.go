package conn_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/window"
)

// Calls that stay without an answer at the same time are one time-out. Five
// time-outs, one after the other, open a breaker.
func TestBreaker(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var b conn.Breaker
	timeOut := func(began, now time.Duration) {
		for range 64 {
			b.TimedOut(began, now)
		}
	}
	want := func(want bool, when string) {
		t.Helper()
		if got := b.Open(); got != want {
			t.Errorf("%s: got open %v, want %v", when, got, want)
		}
	}
	timeOut(0, 10*ms)
	want(false, "64 calls in one time-out")
	for i := range 5 {
		timeOut(time.Duration(i)*2*ms, 10*ms+time.Duration(i)*2*ms)
	}
	want(false, "calls that began before the time-out ended")
	timeOut(10*ms, 20*ms)
	timeOut(20*ms, 30*ms)
	timeOut(30*ms, 40*ms)
	want(false, "four time-outs")
	b.Answered()
	timeOut(40*ms, 50*ms)
	want(false, "an answer, and one more")
	for i := range time.Duration(4) {
		timeOut((50+10*i)*ms, (60+10*i)*ms)
	}
	want(true, "five in a row")
	timeOut(100*ms, 110*ms)
	want(true, "one more")
	b.Answered()
	want(false, "after an answer")
	if got := b.Openings(); got != 1 {
		t.Errorf("openings: got %d, want the 1 that has ended", got)
	}
	timeOut(110*ms, 120*ms)
	want(false, "time-outs before the answer are forgotten")
}

// One of many callers opens the breaker.
func TestBreakerOpensOnce(t *testing.T) {
	t.Parallel()
	var b conn.Breaker
	var opened atomic.Int64
	for i := range time.Duration(6) {
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				if b.TimedOut(i*time.Second, (i+1)*time.Second) {
					opened.Add(1)
				}
			})
		}
		callers.Wait()
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("opened: got %d times, want 1", got)
	}
}

func TestServerClock(t *testing.T) {
	t.Parallel()
	const ms = window.Instant(1000)
	var c conn.ServerClock
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
		{10503 * ms, 10030 * time.Millisecond, 10533 * ms, "one slow answer after 10 s: not believed yet"},
		{20504 * ms, 20031 * time.Millisecond, 20504 * ms, "not contradicted in 10 s more: believed"},
		{99999 * ms, 20032 * time.Millisecond, 99999 * ms, "set forward: believed at once"},
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
		"{}foo": 9500, "foo{": conn.SlotOf([]byte("foo{")), "{{foo}}": conn.SlotOf([]byte("{foo")),
	} {
		if got := conn.SlotOf([]byte(key)); got != want {
			t.Errorf("slot of %q: got %d, want %d", key, got, want)
		}
	}
}
