//go:build ignore

// A crawler that asks each host for at most fifty pages a second, whatever the number of
// its workers: go run examples/compat/crawler.go
package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/weirhq/weir/compat/rate"
)

// A crawler has a limiter for each host that it has met.
type crawler struct {
	mu    sync.Mutex
	hosts map[string]*rate.Limiter
}

func (c *crawler) limiter(host string) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.hosts[host]
	if !ok {
		l = rate.NewLimiter(rate.Every(20*time.Millisecond), 1)
		c.hosts[host] = l
	}
	return l
}

// fetch gets a page when its host may be asked again.
func (c *crawler) fetch(ctx context.Context, page string) error {
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	return c.limiter(u.Host).Wait(ctx) // and then http.Get
}

// crawl fetches all pages with several workers, and returns the number of those fetched.
func (c *crawler) crawl(ctx context.Context, pages []string) int {
	todo := make(chan string)
	var workers sync.WaitGroup
	var mu sync.Mutex
	fetched := 0
	for range 8 {
		workers.Go(func() {
			for page := range todo {
				if err := c.fetch(ctx, page); err != nil {
					fmt.Println(err)
					continue
				}
				mu.Lock()
				fetched++
				mu.Unlock()
			}
		})
	}
	for _, page := range pages {
		todo <- page
	}
	close(todo)
	workers.Wait()
	return fetched
}

func main() {
	c := &crawler{hosts: map[string]*rate.Limiter{}}
	var pages []string
	for i := range 5 {
		pages = append(pages, fmt.Sprintf("https://a.example/%d", i), fmt.Sprintf("https://b.example/%d", i))
	}
	start := time.Now()
	fetched := c.crawl(context.Background(), pages)
	took := time.Since(start)
	fmt.Println(fetched, "pages of", len(c.hosts), "hosts")
	fmt.Println("five pages of a host took 80 ms:", took >= 80*time.Millisecond)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	c.crawl(ctx, []string{"https://c.example/0", "https://c.example/1"})
}

// It prints:
//
// 10 pages of 2 hosts
// five pages of a host took 80 ms: true
// rate: Wait(n=1) would exceed context deadline
