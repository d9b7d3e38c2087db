package window_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/window"
)

// What is held counts in full. What it really cost counts from the take on.
func ExampleCompiled_Settle() {
	l := window.MustCompile(window.Limit{Quota: 100, Measure: window.Sum, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute})
	at := func(d time.Duration) window.Instant {
		return window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC).Add(d))
	}
	id := window.HoldID{1} // random in a program

	s, r := l.TakeHold(nil, at(0), window.Hits{N: 80}, id)
	fmt.Println("taken:", r.Held, r.Used)
	s, r = l.Settle(s, at(20*time.Second), id, 30)
	fmt.Println("settled:", r.Held, r.Used)
	fmt.Println("after a minute:", l.Check(s, at(time.Minute), window.Hits{}).Used)
	// Output:
	// taken: true 80
	// settled: true 30
	// after a minute: 0
}

// Each ban is three times as long as the one before.
func ExampleBan() {
	l := window.MustCompile(window.Limit{
		Quota: 1, Window: window.Sliding(time.Second),
		Ban: window.Ban{For: time.Minute, Factor: 3, Most: 10 * time.Minute, Forget: 24 * time.Hour},
	})
	now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	var s window.State
	var r window.Result
	for range 4 {
		s, _ = l.Take(s, now, window.Hits{N: 1})
		s, r = l.Take(s, now, window.Hits{N: 1}) // over the limit
		fmt.Println(r.Banned, r.RetryAfter)
		now = now.Add(r.RetryAfter)
	}
	// Output:
	// true 1m0s
	// true 3m0s
	// true 9m0s
	// true 10m0s
}

// Three vouchers an account, and no more.
func ExampleEver() {
	l := window.MustCompile(window.Limit{Quota: 3, Window: window.Ever()})
	s, r := l.Take(nil, 0, window.Hits{N: 3})
	fmt.Println(r.Allowed, r.Remaining)
	_, r = l.Take(s, 1<<50, window.Hits{N: 1}) // 35 years later
	fmt.Println(r.Allowed, r.RetryAfter == window.Never)
	// Output:
	// true 0
	// false true
}

// At most two at the same time.
func ExampleHeld() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Held(30 * time.Second)})
	var s window.State
	var r window.Result
	for i := range byte(3) {
		s, r = l.TakeHold(s, 0, window.Hits{N: 1}, window.HoldID{1 + i})
		fmt.Println(r.Held, r.RetryAfter)
	}
	s, _ = l.Settle(s, 1, window.HoldID{1}, window.AsHeld)
	_, r = l.TakeHold(s, 1, window.Hits{N: 1}, window.HoldID{3})
	fmt.Println(r.Held, r.RetryAfter)
	// Output:
	// true 0s
	// true 0s
	// false 30s
	// true 0s
}
