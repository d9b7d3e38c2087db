//go:build ignore

// This program makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
package main

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

func main() {
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6380"}, DisableRetry: true, DisableCache: true})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for range 2 {
		d, err := r.Do(context.Background(), r.B().Arbitrary("WEIR.TAKE").Args("HITS", "3", "action", "post", "user", "rueidis").Build()).AsMap()
		if err != nil {
			panic(err)
		}
		allowed := d["allowed"]
		if is, _ := allowed.AsBool(); is {
			fmt.Println(1)
		} else {
			fmt.Println(0)
		}
	}
}
