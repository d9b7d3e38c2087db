package remote_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// Calls that stay without an answer at the same time are one time-out. Five
// time-outs, one after the other, open a breaker.
func TestBreaker(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var b remote.Breaker
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
	timeOut(110*ms, 120*ms)
	want(false, "time-outs before the answer are forgotten")
}

// One of many callers opens the breaker.
func TestBreakerOpensOnce(t *testing.T) {
	t.Parallel()
	var b remote.Breaker
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
