//go:build ignore

// The recipe docs/recipes/vouchers.md as a program: go run examples/vouchers.go
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

var errNoVoucher = errors.New("no voucher left")

// checkout uses a voucher if pay succeeds.
func checkout(ctx context.Context, e *weir.Engine, account string, pay func() error) error {
	r := weir.Request{Attributes: weir.Attributes("action", "redeem", "account", account)}
	d, err := e.Take(ctx, r)
	if err != nil {
		return err
	}
	if !d.Allowed {
		return errNoVoucher
	}
	err = pay()
	ctx = context.WithoutCancel(ctx) // ctx may be done, and the hold must end nevertheless
	if err != nil {
		_, cancelled := e.Cancel(ctx, d.Receipt, r)
		return errors.Join(err, cancelled)
	}
	settled, err := e.Settle(ctx, d.Receipt, r)
	lost := func(u weir.Usage) bool { return u.Rule == "vouchers" && !u.Held }
	if err == nil && !settled.Degraded && slices.ContainsFunc(settled.Usages, lost) {
		return errors.New("paid too late: the voucher is free again")
	}
	return err // a degraded settle is sent again
}

func main() {
	rules, err := rulefile.Load("examples/vouchers.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(checkout(ctx, e, "ann", func() error { return errors.New("card declined") }))
	for range 4 {
		fmt.Println(checkout(ctx, e, "ann", func() error { return nil }))
	}
}

// It prints:
//
// card declined
// <nil>
// <nil>
// <nil>
// no voucher left
