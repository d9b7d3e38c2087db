//go:build ignore

// This program makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

func main() {
	r := redis.NewClient(&redis.Options{Addr: "localhost:6380", MaxRetries: -1})
	for range 2 {
		d, err := r.Do(context.Background(), "WEIR.TAKE", "HITS", 3, "action", "post", "user", "go-redis").Result()
		if err != nil {
			panic(err)
		}
		// go-redis speaks RESP3: the answer is a map.
		if d.(map[any]any)["allowed"].(bool) {
			fmt.Println(1)
		} else {
			fmt.Println(0)
		}
	}
}
