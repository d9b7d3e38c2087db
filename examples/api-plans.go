//go:build ignore

// The recipe docs/recipes/api-plans.md as a program: go run examples/api-plans.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// call reports whether a customer may call, and how many calls of the month are left.
func call(ctx context.Context, e *weir.Engine, customer, plan, path string) (bool, int64, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "call", "customer", customer, "plan", plan, "path", path)})
	if err != nil {
		return false, 0, err
	}
	return d.Allowed, d.Usages[0].Remaining, nil
}

func main() {
	rules, err := rulefile.Load("examples/api-plans.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(call(ctx, e, "acme", "free", "/v2/search"))
	fmt.Println(call(ctx, e, "acme", "pro", "/v2/search"))
	fmt.Println(call(ctx, e, "other", "none", "/v2/search"))
}

// It prints:
//
// true 999 <nil>
// true 99998 <nil>
// true 99 <nil>
