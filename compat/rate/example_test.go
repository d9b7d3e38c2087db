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
