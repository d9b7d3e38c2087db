//go:build ignore

// The recipe docs/recipes/llm-tokens.md as a program: go run examples/llm-tokens.go
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

const price = 10 // micros for a token

// complete calls a model within the limits of a team. model returns what the call
// has cost.
func complete(ctx context.Context, e *weir.Engine, team string, most int, model func() (tokens int, err error)) error {
	request := func(tokens int) weir.Request {
		return weir.Request{Attributes: weir.Attributes("action", "chat", "team", team,
			"tokens", fmt.Sprint(tokens), "micros", fmt.Sprint(tokens*price))}
	}
	d, err := e.Take(ctx, request(most))
	if err != nil {
		return err
	}
	if !d.Allowed {
		return fmt.Errorf("%s: try again within %v", d.RetryRule, d.RetryAfter.Round(time.Second))
	}
	tokens, err := model()
	ctx = context.WithoutCancel(ctx) // ctx may be done, and the hold must end nevertheless
	if err != nil {
		_, cancelled := e.Cancel(ctx, d.Receipt, request(most))
		return errors.Join(err, cancelled)
	}
	_, err = e.Settle(ctx, d.Receipt, request(tokens))
	return err
}

func main() {
	rules, err := rulefile.Load("examples/llm-tokens.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	fmt.Println(complete(ctx, e, "red", 6000, func() (int, error) {
		fmt.Println("meanwhile:", complete(ctx, e, "red", 6000, nil))
		return 1800, nil
	}))
	fmt.Println(complete(ctx, e, "red", 6000, func() (int, error) { return 0, errors.New("the model is busy") }))
	for _, rule := range []string{"llm-calls", "llm-tokens", "llm-money"} {
		u, err := e.Usage(ctx, rule, weir.Attributes("team", "red"))
		fmt.Println(rule, u.Used, err)
	}
}

// It prints:
//
// meanwhile: llm-tokens: try again within 5m0s
// <nil>
// the model is busy
// llm-calls 1 <nil>
// llm-tokens 1800 <nil>
// llm-money 18000 <nil>
