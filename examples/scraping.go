//go:build ignore

// The recipe docs/recipes/scraping.md as a program: go run examples/scraping.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// read returns the outcome of a request for a page.
func read(ctx context.Context, e *weir.Engine, ip, path string) (string, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("method", "GET", "path", path, "ip", ip)})
	return d.Outcome, err
}

func main() {
	rules, err := rulefile.Load("examples/scraping.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	seen := map[string]int{}
	for i := range 100 {
		outcome, err := read(ctx, e, "198.51.100.1", fmt.Sprintf("/product/%d", i))
		if err != nil {
			panic(err)
		}
		seen[outcome]++
	}
	fmt.Println(seen)
}

// It prints:
//
// map[allow:60 captcha:40]
