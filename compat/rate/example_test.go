package rate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/compat/rate"
)

func Example() {
	limiter := rate.NewLimiter(rate.Every(time.Second), 3)
	now := time.Now()
	for range 4 {
		fmt.Println(limiter.AllowN(now, 1))
	}
	fmt.Println(limiter.AllowN(now.Add(time.Second), 1))
	fmt.Println(limiter.AllowN(now.Add(-time.Hour), 1)) // a clock that was set back
	fmt.Println(limiter.AllowN(now.Add(time.Second), 1))
	// Output:
	// true
	// true
	// true
	// false
	// true
	// false
	// false
}

// A weir.Limiter takes the place of a map of limiters.
func Example_keys() {
	ctx := context.Background()
	users := weir.MustLimiter(weir.Bucket(10, time.Second, 20)) // rate.NewLimiter(10, 20) for each user
	defer users.Close()

	r, err := users.Allow(ctx, "user:42")
	if err == nil && !r.Allowed {
		fmt.Println("try again in", r.RetryAfter)
	}
	fmt.Println(r.Remaining, "more at once")
	// Output: 19 more at once
}

// A caller that gives up lets the next one have its time.
func ExampleLimiter_ReserveN() {
	limiter := rate.NewLimiter(2, 1) // one each 500 ms
	now := time.Now()
	first, second := limiter.ReserveN(now, 1), limiter.ReserveN(now, 1)
	fmt.Println(first.DelayFrom(now), second.DelayFrom(now))
	second.CancelAt(now)
	fmt.Println(limiter.ReserveN(now, 1).DelayFrom(now))
	// Output:
	// 0s 500ms
	// 500ms
}
