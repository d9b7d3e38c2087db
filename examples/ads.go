//go:build ignore

// The recipe docs/recipes/ads.md as a program: go run examples/ads.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// choose returns the first of the campaigns that may be shown to a person.
func choose(ctx context.Context, e *weir.Engine, person string, campaigns ...string) (string, error) {
	for _, c := range campaigns {
		d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "show", "campaign", c, "person", person, "micros", "300000")})
		if err != nil || d.Allowed {
			return c, err
		}
	}
	return "none", nil
}

func main() {
	rules, err := rulefile.Load("examples/ads.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	for _, person := range []string{"ann", "bob", "cid", "dan", "eve"} {
		fmt.Println(choose(ctx, e, person, "c1", "c2"))
	}
}

// It prints:
//
// c1 <nil>
// c1 <nil>
// c2 <nil>
// c2 <nil>
// none <nil>
