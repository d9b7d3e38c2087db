//go:build ignore

// A client that halves its rate when a server answers 429, and comes back to it
// slowly: go run examples/compat/client.go
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weirhq/weir/compat/rate"
)

// A client makes up to most calls a second.
type client struct {
	most    rate.Limit
	limiter *rate.Limiter
}

func newClient(most rate.Limit, burst int) *client {
	return &client{most: most, limiter: rate.NewLimiter(most, burst)}
}

// get waits for its turn, and asks again after a 429.
func (c *client) get(ctx context.Context, url string) (status int, err error) {
	for {
		if err := c.limiter.Wait(ctx); err != nil {
			return 0, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusTooManyRequests {
			c.limiter.SetLimit(min(c.most, c.limiter.Limit()+10))
			return answer.StatusCode, nil
		}
		c.limiter.SetLimit(c.limiter.Limit() / 2)
	}
}

func main() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 3 || calls == 4 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()

	c := newClient(200, 2)
	for range 4 {
		status, err := c.get(context.Background(), server.URL)
		fmt.Println(status, err, c.limiter.Limit())
	}
	fmt.Println(calls, "calls")

	c.limiter.SetBurst(0) // the server is down for maintenance
	_, err := c.get(context.Background(), server.URL)
	fmt.Println(err)
}

// It prints:
//
// 200 <nil> 200
// 200 <nil> 200
// 200 <nil> 60
// 200 <nil> 70
// 6 calls
// rate: Wait(n=1) exceeds limiter's burst 0
