package window_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/window"
)

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
