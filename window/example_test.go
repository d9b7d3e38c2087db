package window_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/window"
)

// noon is the first instant of the examples.
var noon = window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))

func ExampleSliding() {
	l := window.MustCompile(window.Limit{Quota: 5, Window: window.Sliding(time.Hour)}) // five posts an hour
	s, _ := l.Take(nil, noon, window.Hits{N: 5})
	_, r := l.Take(s, noon.Add(20*time.Minute), window.Hits{N: 1})
	fmt.Println(r.Allowed, r.RetryAfter)
	// Output: false 40m0s
}

func ExampleCells() {
	views := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Cells(24*time.Hour, 1440)}) // a counter
	s, _ := views.Record(nil, noon, window.Hits{N: 3})
	s, _ = views.Record(s, noon.Add(time.Minute), window.Hits{N: 4})
	now := noon.Add(2*time.Minute - time.Microsecond) // the last instant of a cell
	reading := views.Read(s, now)
	fmt.Println(reading.Count(time.Minute), reading.Count(time.Hour))
	for _, cell := range reading.History {
		fmt.Println(cell.Start.Time().Format(time.TimeOnly), cell.Hits)
	}
	// Output:
	// 4 7
	// 12:00:00 3
	// 12:01:00 4
}

func ExampleFixed() {
	l := window.MustCompile(window.Limit{Quota: 3, Window: window.Fixed(time.Minute)}) // starts with the first hit
	s, _ := l.Take(nil, noon, window.Hits{N: 3})
	_, r := l.Take(s, noon.Add(59*time.Second), window.Hits{N: 1})
	fmt.Println(r.Allowed, r.RetryAfter)
	_, r = l.Take(s, noon.Add(60*time.Second), window.Hits{N: 1})
	fmt.Println(r.Allowed, r.Remaining)
	// Output:
	// false 1s
	// true 2
}

func ExampleCalendar() {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		fmt.Println(err)
		return
	}
	l := window.MustCompile(window.Limit{Quota: 10, Window: window.Calendar(window.Day, shanghai)})
	_, r := l.Take(nil, noon, window.Hits{N: 1}) // 20:00 in Shanghai
	fmt.Println(r.Remaining, r.ResetAfter)
	// Output: 9 4h0m0s
}

func ExampleBucket() {
	l := window.MustCompile(window.Limit{Quota: 60, Window: window.Bucket(time.Minute, 5)}) // one a second, five at once
	s, r := l.Take(nil, noon, window.Hits{N: 5})
	fmt.Println(r.Allowed, r.Remaining)
	_, r = l.Take(s, noon, window.Hits{N: 2})
	fmt.Println(r.Allowed, r.RetryAfter)
	// Output:
	// true 0
	// false 2s
}

func ExampleCompiled_Check() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Sliding(time.Minute)})
	s, _ := l.Take(nil, noon, window.Hits{N: 1})
	fmt.Println(l.Check(s, noon, window.Hits{N: 1}).Allowed, l.Check(s, noon, window.Hits{N: 2}).Allowed)
	fmt.Println(l.Check(s, noon, window.Hits{}).Used) // N = 0 only looks
	// Output:
	// true false
	// 1
}

func ExampleCompiled_Take() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Sliding(time.Minute)})
	var s window.State
	for range 3 {
		var r window.Result
		s, r = l.Take(s, noon, window.Hits{N: 1})
		fmt.Println(r.Allowed, r.Remaining)
	}
	// Output:
	// true 1
	// true 0
	// false 0
}

func ExampleCompiled_Record() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Fixed(time.Minute)})
	s, r := l.Record(nil, noon, window.Hits{N: 5}) // whatever the limit
	fmt.Println(r.Used, r.Remaining)
	fmt.Println(l.Check(s, noon, window.Hits{N: 1}).Allowed)
	// Output:
	// 5 0
	// false
}

func ExampleCompiled_Refund() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Sliding(time.Minute)})
	s, _ := l.Take(nil, noon, window.Hits{N: 2})
	_, r := l.Refund(s, noon, window.Hits{N: 1}) // the action failed after all
	fmt.Println(r.Remaining)
	// Output: 1
}

func ExampleCompiled_Expires() {
	l := window.MustCompile(window.Limit{Quota: 2, Window: window.Sliding(time.Minute)})
	s, _ := l.Take(nil, noon, window.Hits{N: 1})
	fmt.Println(l.Expires(s).Time().Format(time.TimeOnly)) // the state may be dropped then
	// Output: 12:01:00
}

func ExampleCompile() {
	_, err := window.Compile(window.Limit{Quota: 5, Window: window.Cells(time.Hour, -1)})
	fmt.Println(err)
	// Output: weir: window.n: -1: want 1 to 10000 cells
}

// Two strangers a day. A member that is already inside is free.
func ExampleHits_member() {
	l := window.MustCompile(window.Limit{Quota: 2, Measure: window.Distinct, Window: window.Calendar(window.Day, time.UTC)})
	var s window.State
	for _, peer := range []string{"ann", "bob", "ann", "cid"} {
		var r window.Result
		s, r = l.Take(s, noon, window.Hits{N: 1, Member: member(peer)})
		fmt.Println(peer, r.Allowed)
	}
	// Output:
	// ann true
	// bob true
	// ann true
	// cid false
}

// After 30 questions a day, one every two seconds.
func ExampleAfter() {
	l := window.MustCompile(window.Limit{
		Quota:  1,
		Window: window.Sliding(2 * time.Second),
		After:  window.After{Count: 30, Window: window.Calendar(window.Day, time.UTC)},
	})
	s, _ := l.Take(nil, noon, window.Hits{N: 29})
	s, r := l.Take(s, noon, window.Hits{N: 1}) // the limit's first
	fmt.Println(r.Allowed)
	_, r = l.Take(s, noon, window.Hits{N: 1})
	fmt.Println(r.Allowed, r.RetryAfter)
	// Output:
	// true
	// false 2s
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
