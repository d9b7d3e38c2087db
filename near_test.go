package weir_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A limit with Near reports in the call whose admitted hits reach its mark: not again when more
// requests are admitted, and not when it or another rule denies. The count of a model says when.
func TestNear(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 28))
		quota, near := 1+r.Int64N(150), 1+r.IntN(100)
		e := newEngine(
			rule.Rule{Name: "blocked", When: []rule.Condition{{Attribute: "blocked", Test: rule.Equal("yes")}}, Quota: &rule.Quota{}, Window: window.Fixed(time.Hour)},
			rule.Rule{Name: "calls", Per: []string{"user"}, Quota: &rule.Quota{Value: quota}, Near: near, Window: window.Fixed(time.Hour)},
			rule.Rule{Name: "trial", Per: []string{"user"}, Quota: &rule.Quota{Value: quota}, Near: near, Window: window.Fixed(time.Hour), Mode: rule.Shadow},
		)
		used, mark, reports := int64(0), (quota*int64(near)+99)/100, 0
		for range 400 {
			verb := []store.Verb{store.Take, store.Take, store.Check, store.Record, store.Refund}[r.IntN(5)]
			if verb == store.Record && r.IntN(4) > 0 {
				verb = store.Take
			}
			hits, blocked := 1+r.Int64N(3), r.IntN(4) == 0 && verb < store.Record
			req := weir.Request{Attributes: weir.Attributes("user", "ann", "blocked", map[bool]string{true: "yes"}[blocked]), Hits: hits}
			before := used
			switch {
			case verb == store.Take && !blocked && used+hits <= quota, verb == store.Record:
				used += hits
			case verb == store.Refund:
				used = max(0, used-hits)
			}
			var want []string
			if before < mark && used >= mark {
				want = []string{"calls"}
				reports++
			}
			var d weir.Decision
			if err := e.Do(t.Context(), verb, &req, &d); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Triggered, want) {
				t.Fatalf("%v of %d hits, blocked %v, %d of %d used before and %d after, near at %d %%: got %q, want %q",
					verb, hits, blocked, before, quota, used, near, d.Triggered, want)
			}
			if want != nil && d.Usages[len(d.Usages)-2].Key != "ann" {
				t.Errorf("got %+v, want the key", d.Usages)
			}
		}
		if reports == 0 {
			t.Errorf("quota %d, near at %d %%: got no report", quota, near)
		}
		e.Close()
	}
}

// Without other requests, a limit reports once a window for each key, however often denied
// requests are tried again.
func ExampleEngine_Take_near() {
	e := newEngine(rule.Rule{
		Name: "calls", Per: []string{"customer"}, Quota: &rule.Quota{Value: 5}, Near: 80, Window: window.Calendar(window.Month, nil),
	})
	defer e.Close()
	for range 7 {
		d, _ := e.Take(context.Background(), request("customer=7"))
		fmt.Println(d.Allowed, d.Usages[0].Used, d.Triggered)
	}
	// Output:
	// true 1 []
	// true 2 []
	// true 3 []
	// true 4 [calls]
	// true 5 []
	// false 5 []
	// false 5 []
}
