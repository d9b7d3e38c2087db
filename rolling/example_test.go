package rolling_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/rolling"
)

// Five posts an hour, counted in minutes: a post leaves after 59 to 60 minutes.
func Example() {
	posts := rolling.MustNew[int](60, time.Hour)
	for range 6 {
		if posts.Sum() >= 5 {
			fmt.Println("enough for this hour")
			continue
		}
		posts.Add(1)
		fmt.Println("posted", posts.Sum())
	}
	// Output:
	// posted 1
	// posted 2
	// posted 3
	// posted 4
	// posted 5
	// enough for this hour
}

// A thousand points within three seconds are a critical hit.
func ExampleWindow_Sum() {
	points := rolling.MustNew[int](30, 3*time.Second)
	for _, blow := range []int{300, 450, 120, 200} {
		points.Add(blow)
		fmt.Println(points.Sum(), points.Sum() >= 1000)
	}
	// Output:
	// 300 false
	// 750 false
	// 870 false
	// 1070 true
}

// All numbers of a window of latencies, from the same read.
func ExampleWindow_Total() {
	latency := rolling.MustNew[time.Duration](10, time.Minute)
	for _, ms := range []time.Duration{12, 30, 18} {
		latency.Add(ms * time.Millisecond)
	}
	t := latency.Total()
	fmt.Println(t.Count, "requests,", t.Sum/time.Duration(t.Count), "on average,", t.Min, "to", t.Max)
	// Output: 3 requests, 20ms on average, 12ms to 30ms
}

// Requests per second over a minute, and the same hits in steps of ten seconds.
func ExampleWindow_View() {
	requests := rolling.MustNew[int](60, time.Minute)
	tens, err := requests.View(6, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 120 {
		requests.Add(1)
	}
	count := func(v rolling.View[int]) (steps, sum int) {
		v.Reduce(func(b rolling.Bucket[int]) {
			steps++
			sum += b.Sum
		})
		return steps, sum
	}
	fmt.Println(count(requests.All()))
	fmt.Println(count(tens))
	// Output:
	// 60 120
	// 6 120
}

// The numbers of the running bucket still grow. Without it, all steps have the same
// length, as a decision such as a circuit breaker's needs.
func ExampleView_Complete() {
	failures := rolling.MustNew[int](10, 10*time.Hour)
	failures.Add(1)
	steps := 0
	failures.All().Complete().Reduce(func(rolling.Bucket[int]) { steps++ })
	fmt.Println(steps, "complete buckets with", failures.All().Complete().Sum(), "failures, and one that runs with", failures.Sum())
	// Output: 9 complete buckets with 0 failures, and one that runs with 1
}
