package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
)

func Example() {
	c, err := client.New("weir.internal:8082", client.WithStreams(1), client.WithTimeout(100*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	d, err := c.Take(context.Background(), weir.Request{Attributes: weir.Attributes("action", "post", "user", "42")})
	switch {
	case err != nil && client.Uncounted(err):
		fmt.Println("nothing was counted: the call may be made again")
	case err != nil:
		fmt.Println(err)
	case !d.Allowed:
		fmt.Println("denied by", d.Rule, "for", d.RetryAfter)
	}
}
