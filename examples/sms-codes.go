//go:build ignore

// The recipe docs/recipes/sms-codes.md as a program: go run examples/sms-codes.go
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// code sends a one-time password, or returns the wait until the next one.
func code(ctx context.Context, e *weir.Engine, phone, ip string, send func() error) (time.Duration, error) {
	r := weir.Request{Attributes: weir.Attributes("action", "sms", "phone", phone, "ip", ip)}
	d, err := e.Take(ctx, r)
	if err != nil || !d.Allowed {
		return d.RetryAfter, err
	}
	if err := send(); err != nil {
		_, refunded := e.Refund(ctx, r)
		return 0, errors.Join(err, refunded)
	}
	return 0, nil
}

func main() {
	rules, err := rulefile.Load("examples/sms-codes.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(code(ctx, e, "+491701", "192.0.2.7", func() error { return errors.New("provider is down") }))
	for range 2 {
		wait, err := code(ctx, e, "+491701", "192.0.2.7", func() error { return nil })
		fmt.Println(wait.Round(time.Second), err)
	}
}

// It prints:
//
// 0s provider is down
// 0s <nil>
// 1m0s <nil>
