package redisstore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redisstore"
)

// Three processes share a limit. While Redis does not answer, each of them admits a third of it from its own memory, and
// what it admits is recorded in Redis afterwards.
func Example() {
	ctx := context.Background()
	shared, err := redisstore.Open(ctx, "redis://localhost:6379?prefix=shop")
	if err != nil {
		log.Fatal(err) // a wrong URL, password or certificate; not an outage
	}
	defer shared.Close() // after the limiter

	posts := weir.MustLimiter(weir.Sliding(5, time.Hour),
		weir.WithStore(shared),
		weir.WithName("posts"), // the limit's name in Redis
		weir.WithNodes(func() int { return 3 }))
	defer posts.Close()

	r, err := posts.Allow(ctx, "user:42")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(r.Allowed, r.Remaining, r.Degraded)
}
