//go:build ignore

// The recipe docs/recipes/payments.md as a program: go run examples/payments.go
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// pay asks the bank if the rules allow it, and keeps the amount only if the bank
// accepts.
func pay(ctx context.Context, e *weir.Engine, card, device, cents string, bank func() error) (string, error) {
	r := weir.Request{Attributes: weir.Attributes("action", "pay", "card", card, "device", device, "cents", cents)}
	d, err := e.Take(ctx, r)
	if err != nil || !d.Allowed {
		return d.Rule, err
	}
	ctx = context.WithoutCancel(ctx) // the hold must end even if the customer leaves
	if err := bank(); err != nil {
		_, cancelled := e.Cancel(ctx, d.Receipt, r)
		return "bank", errors.Join(err, cancelled)
	}
	_, err = e.Settle(ctx, d.Receipt, r)
	return "paid", err
}

func main() {
	rules, err := rulefile.Load("examples/payments.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	accept, decline := func() error { return nil }, func() error { return errors.New("declined") }
	fmt.Println(pay(ctx, e, "c1", "d1", "30000", accept))
	fmt.Println(pay(ctx, e, "c1", "d1", "20000", decline))
	fmt.Println(pay(ctx, e, "c1", "d1", "20000", accept))
	fmt.Println(pay(ctx, e, "c1", "d1", "1", accept))
}

// It prints:
//
// paid <nil>
// bank declined
// paid <nil>
// card-amount <nil>
