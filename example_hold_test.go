package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A call of a language model takes what it may cost, and is settled at what it
// did cost.
func ExampleEngine_Settle() {
	e := newEngine(rule.Rule{
		Name: "llm-tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens",
		Quota: &rule.Quota{Value: 10_000}, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute,
	})
	defer e.Close()
	ctx := context.Background()
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("team", "red", "tokens", "6000")})
	if err != nil || !d.Allowed {
		panic("wait until there is room for 6000 tokens")
	}
	fmt.Println(d.Usages[0].Used, "used, a receipt:", !d.Receipt.IsZero())

	// … the call takes place, and another process may settle it …
	text := d.Receipt.String()
	r, err := receipt.Parse(text)
	if err != nil {
		panic(err)
	}
	for range 2 {
		d, err = e.Settle(ctx, r, weir.Request{Attributes: weir.Attributes("team", "red", "tokens", "1800")})
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Usages[0].Used, "used, held until now:", d.Usages[0].Held)
	}
	// Output:
	// 6000 used, a receipt: true
	// 1800 used, held until now: true
	// 1800 used, held until now: false
}

// A call that did not take place gives back what it took.
func ExampleEngine_Cancel() {
	e := newEngine(rule.Rule{
		Name: "reports", Per: []string{"team"},
		Quota: &rule.Quota{Value: 20}, Window: window.Calendar(window.Day, nil), Hold: time.Hour,
	})
	defer e.Close()
	ctx := context.Background()
	request := weir.Request{Attributes: weir.Attributes("team", "red")}
	d, err := e.Take(ctx, request)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Usages[0].Used, "of", d.Usages[0].Quota)
	if d, err = e.Cancel(ctx, d.Receipt, request); err != nil {
		panic(err)
	}
	fmt.Println(d.Usages[0].Used, "of", d.Usages[0].Quota)
	// Output:
	// 1 of 20
	// 0 of 20
}

// A worker renews its place while it works. If that comes too late, it has lost
// the place.
func ExampleEngine_Renew() {
	e := newEngine(rule.Rule{
		Name: "exports-in-flight", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Held(30 * time.Second),
	})
	defer e.Close()
	ctx := context.Background()
	request := weir.Request{Attributes: weir.Attributes("user", "42")}
	first, err := e.Take(ctx, request)
	if err != nil {
		panic(err)
	}
	second, err := e.Take(ctx, request)
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Allowed, second.Allowed)

	d, err := e.Renew(ctx, first.Receipt, request)
	if err != nil {
		panic(err)
	}
	fmt.Println("still mine:", d.Usages[0].Held)
	if _, err = e.Settle(ctx, first.Receipt, request); err != nil {
		panic(err)
	}
	if d, err = e.Renew(ctx, first.Receipt, request); err != nil {
		panic(err)
	}
	fmt.Println("still mine:", d.Usages[0].Held)
	// Output:
	// true false
	// still mine: true
	// still mine: false
}

// After four failed logins the fifth one bans. A success forgives all of it.
func ExampleEngine_Refund_ban() {
	e := newEngine(rule.Rule{
		Name: "login-failures", Per: []string{"account"}, Quota: &rule.Quota{Value: 4}, Window: window.Sliding(15 * time.Minute),
		Ban:      window.Ban{For: 15 * time.Minute, Factor: 2},
		Feedback: map[string]int64{"logged-in": window.All},
	})
	defer e.Close()
	ctx := context.Background()
	account := weir.Attributes("account", "ann")
	var d weir.Decision
	for range 5 {
		var err error
		if d, err = e.Take(ctx, weir.Request{Attributes: account}); err != nil {
			panic(err)
		}
	}
	fmt.Println(d.Allowed, d.Usages[0].Banned, d.RetryAfter)
	if _, err := e.Refund(ctx, weir.Request{Attributes: account, Feedback: "logged-in"}); err != nil {
		panic(err)
	}
	k, err := e.Usage(ctx, "login-failures", account)
	if err != nil {
		panic(err)
	}
	fmt.Println(k.Banned, k.Strikes, k.Used)
	// Output:
	// false true 15m0s
	// false 0 0
}
