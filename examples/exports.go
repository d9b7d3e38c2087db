//go:build ignore

// The recipe docs/recipes/exports.md as a program: go run examples/exports.go
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

var errBusy = errors.New("too many exports")

// export runs work while it holds a slot. It cancels work when the slot is lost.
func export(ctx context.Context, e *weir.Engine, user string, work func(context.Context) error) error {
	r := weir.Request{Attributes: weir.Attributes("action", "export", "user", user)}
	d, err := e.Take(ctx, r)
	if err != nil {
		return err
	}
	if !d.Allowed {
		return errBusy
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()
	renew := time.NewTicker(10 * time.Second)
	defer renew.Stop()
	for {
		select {
		case err := <-ended:
			// ctx may be done, and the slot is to be freed nevertheless.
			_, settled := e.Settle(context.WithoutCancel(ctx), d.Receipt, r)
			return errors.Join(err, settled)
		case <-renew.C:
			still, err := e.Renew(ctx, d.Receipt, r)
			for _, u := range still.Usages {
				if !u.Held && !still.Degraded {
					stop(errors.New("the slot is lost")) // work returns soon
				}
			}
			if err != nil {
				fmt.Println("renew again soon:", err)
			}
		}
	}
}

func main() {
	rules, err := rulefile.Load("examples/exports.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	err = export(ctx, e, "42", func(ctx context.Context) error {
		return export(ctx, e, "42", func(ctx context.Context) error {
			third := export(ctx, e, "42", nil)
			another := export(ctx, e, "43", func(context.Context) error { return nil })
			fmt.Println("third:", third, "another user:", another)
			return nil
		})
	})
	fmt.Println("two:", err)
	u, err := e.Usage(ctx, "workers", nil)
	fmt.Println("at work now:", u.Used, err)
}

// It prints:
//
// third: too many exports another user: <nil>
// two: <nil>
// at work now: 0 <nil>
