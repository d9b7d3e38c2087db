//go:build ignore

// The recipe docs/recipes/sign-ups.md as a program: go run examples/sign-ups.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// signUp opens an account, and reports whether it did.
func signUp(ctx context.Context, e *weir.Engine, ip, device string) (bool, string, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "sign-up", "ip", ip, "device", device)})
	return d.Allowed, d.Rule, err
}

func main() {
	rules, err := rulefile.Load("examples/sign-ups.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(signUp(ctx, e, "2001:db8::1", "a"))
	fmt.Println(signUp(ctx, e, "2001:db8::2", "a"))
	fmt.Println(signUp(ctx, e, "2001:db8::3", "b"))
}

// It prints:
//
// true  <nil>
// false per-device <nil>
// true  <nil>
