//go:build ignore

// The recipe docs/recipes/graphql.md as a program: go run examples/graphql.go
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// query runs a query whose cost was estimated from its text. run returns what it has
// cost: the nodes that it has resolved.
func query(ctx context.Context, e *weir.Engine, app string, estimate int, run func() (points int, err error)) (string, error) {
	request := func(points int) weir.Request {
		return weir.Request{Attributes: weir.Attributes("action", "query", "app", app, "points", strconv.Itoa(points))}
	}
	d, err := e.Take(ctx, request(estimate))
	if err != nil || !d.Allowed {
		return "over the limit", err
	}
	points, err := run()
	ctx = context.WithoutCancel(ctx) // the hold must end even if the client has gone
	settled, settling := e.Settle(ctx, d.Receipt, request(points))
	if err = errors.Join(err, settling); err != nil {
		return "failed", err
	}
	return fmt.Sprint(settled.Usages[0].Remaining, " points left"), nil
}

func main() {
	rules, err := rulefile.Load("examples/graphql.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(query(ctx, e, "shop", 700, func() (int, error) {
		fmt.Println(query(ctx, e, "shop", 700, nil))
		return 0, nil
	}))
	fmt.Println(query(ctx, e, "blog", 1001, nil))
}

// It prints:
//
// over the limit <nil>
// 1000 points left <nil>
// over the limit <nil>
