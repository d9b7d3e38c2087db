//go:build ignore

// The recipe docs/recipes/games.md as a program: go run examples/games.go
package main

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// score counts points and returns what they trigger.
func score(ctx context.Context, e *weir.Engine, player, points string) ([]string, error) {
	d, err := e.Take(ctx, weir.Request{Attributes: weir.Attributes("action", "score", "player", player, "points", points)})
	return d.Triggered, err
}

func main() {
	rules, err := rulefile.Load("examples/games.yaml")
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(rules.Set)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	ctx := context.Background()

	for _, points := range []string{"400", "500", "200", "100"} {
		fmt.Println(score(ctx, e, "ann", points))
	}
}

// It prints:
//
// [] <nil>
// [] <nil>
// [critical-hit] <nil>
// [] <nil>
