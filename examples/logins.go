//go:build ignore

// The recipe docs/recipes/logins.md as a program: go run examples/logins.go
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// login reports whether a password is correct, or when the next attempt is possible.
func login(ctx context.Context, e *weir.Engine, account, ip string, correct func() bool) (ok bool, wait time.Duration, err error) {
	r := weir.Request{Attributes: weir.Attributes("action", "login", "account", account, "ip", ip)}
	d, err := e.Take(ctx, r)
	if err != nil || !d.Allowed {
		return false, d.RetryAfter, err
	}
	if !correct() {
		return false, 0, nil
	}
	r.Feedback = "logged-in"
	_, err = e.Refund(ctx, r)
	return true, 0, err
}

func main() {
	rules, err := rulefile.Load("examples/logins.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	right, wrong := func() bool { return true }, func() bool { return false }
	for range 4 {
		fmt.Println(login(ctx, e, "ann", "192.0.2.7", wrong))
	}
	fmt.Println(login(ctx, e, "ann", "192.0.2.7", right)) // clears the attempts
	for range 6 {
		fmt.Println(login(ctx, e, "ann", "198.51.100.1", wrong))
	}
	ok, wait, err := login(ctx, e, "ann", "192.0.2.7", right) // locked, with any password
	fmt.Println(ok, wait.Round(time.Minute), err)
}

// It prints:
//
// false 0s <nil>
// false 0s <nil>
// false 0s <nil>
// false 0s <nil>
// true 0s <nil>
// false 0s <nil>
// false 0s <nil>
// false 0s <nil>
// false 0s <nil>
// false 0s <nil>
// false 15m0s <nil>
// false 15m0s <nil>
