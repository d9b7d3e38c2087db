//go:build ignore

// The recipe docs/recipes/customer-limits.md as a program: go run examples/customer-limits.go
package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// customer is a row of your database. A nil limit means the limit that all have.
type customer struct {
	name  string
	limit *int64
}

// call reports whether c may call, how many calls c has made today, and of how many.
func call(ctx context.Context, e *weir.Engine, c customer) (allowed bool, used, of int64, err error) {
	limit := "" // a missing attribute
	if c.limit != nil {
		limit = strconv.FormatInt(*c.limit, 10)
	}
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "call", "customer", c.name, "customer_limit", limit)})
	if err != nil {
		return false, 0, 0, err
	}
	return d.Allowed, d.Usages[0].Used, d.Usages[0].Quota, nil
}

func main() {
	rules, err := rulefile.Load("examples/customer-limits.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	small, large := int64(1), int64(5000)
	fmt.Println(call(ctx, e, customer{"acme", &small}))
	fmt.Println(call(ctx, e, customer{"acme", &small}))
	fmt.Println(call(ctx, e, customer{"acme", &large})) // the customer has bought more
	fmt.Println(call(ctx, e, customer{"other", nil}))
}

// It prints:
//
// true 1 1 <nil>
// false 1 1 <nil>
// true 2 5000 <nil>
// true 1 100 <nil>
