//go:build ignore

// The recipe docs/recipes/posting.md as a program: go run examples/posting.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// post publishes a text if the author may post now.
func post(ctx context.Context, e *weir.Engine, user string, publish func()) (weir.Decision, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "post", "user", user)})
	if err == nil && d.Allowed {
		publish()
	}
	return d, err
}

func main() {
	rules, err := rulefile.Load("examples/posting.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	for range 6 {
		d, err := post(ctx, e, "42", func() {})
		fmt.Println(d.Allowed, d.Rule, err)
	}
}

// It prints:
//
// true  <nil>
// true  <nil>
// true  <nil>
// true  <nil>
// true  <nil>
// false posts-per-hour <nil>
