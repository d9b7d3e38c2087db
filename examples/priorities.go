//go:build ignore

// The recipe docs/recipes/priorities.md as a program: go run examples/priorities.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// call reports whether a call of a priority may go to a backend now.
func call(ctx context.Context, e *weir.Engine, backend, priority string) (bool, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "call", "backend", backend, "priority", priority)})
	return d.Allowed, err
}

func main() {
	rules, err := rulefile.Load("examples/priorities.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	for _, priority := range []string{"batch", "page", "checkout"} {
		admitted := 0
		for range 60 {
			allowed, err := call(ctx, e, "search", priority)
			if err != nil {
				panic(err)
			}
			if allowed {
				admitted++
			}
		}
		fmt.Println(priority, admitted)
	}
}

// It prints:
//
// batch 50
// page 30
// checkout 20
