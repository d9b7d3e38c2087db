package weir_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

var holdsInOutage = []rule.Rule{
	{Name: "tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Hold: 10 * time.Minute},
	{Name: "exports", Per: []string{"team"}, Quota: &rule.Quota{Value: 8}, Window: window.Held(time.Minute)},
	{Name: "calls", Per: []string{"team"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)},
}

// In an outage this process holds. Afterwards the store holds as well, until the
// receipt ends the hold in both places.
func TestHoldsInOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, holdsInOutage)
		defer e.Close()
		attrs := weir.Attributes("team", "red", "tokens", "100")
		none := weir.Receipt{}
		s.set(true, "tokens", "exports", "calls")
		first := do(t, e, step{store.Take, attrs, none, true, []int64{100, 1, 1}, []bool{true, true, false}})
		second := do(t, e, step{store.Take, attrs, none, true, []int64{200, 2, 2}, []bool{true, true, false}})
		third := do(t, e, step{store.Take, attrs, none, false, []int64{200, 2, 2}, []bool{false, false, false}}) // a quarter of 1000 is 250
		if first.Receipt.Take.Place != seal.Local || !third.Receipt.IsZero() {
			t.Errorf("got receipts %+v and %+v, want a local one and none", first.Receipt, third.Receipt)
		}
		truth := weir.Attributes("team", "red", "tokens", "40")
		do(t, e, step{store.Settle, truth, first.Receipt, true, []int64{140, 1, 2}, []bool{true, true, false}})
		do(t, e, step{store.Settle, truth, first.Receipt, true, []int64{140, 1, 2}, []bool{false, false, false}})
		time.Sleep(30 * time.Second)
		do(t, e, step{store.Renew, attrs, second.Receipt, true, []int64{140, 1, 2}, []bool{true, true, false}})

		s.set(false, "tokens", "exports", "calls")
		do(t, e, step{store.Check, attrs, none, true, []int64{0, 0, 0}, []bool{false, false, false}})
		time.Sleep(2 * time.Second)
		do(t, e, step{store.Check, attrs, none, true, []int64{140, 1, 2}, []bool{false, false, false}}) // reported, and held
		do(t, e, step{store.Settle, truth, second.Receipt, true, []int64{80, 0, 2}, []bool{true, true, false}})
		do(t, e, step{store.Settle, truth, second.Receipt, true, []int64{80, 0, 2}, []bool{false, false, false}})
		if got := e.Reports(); got.Pending != 0 || got.Lost != 0 {
			t.Errorf("got %+v, want nothing pending", got)
		}
		// In memory the hold was ended, too.
		s.set(true, "tokens", "exports", "calls")
		do(t, e, step{store.Check, attrs, none, true, []int64{80, 0, 2}, []bool{false, false, false}})
	})
}

// A take that memory counted and another rule denies is given back exactly.
func TestHoldsGivenBackInOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, append(slices.Clip(holdsInOutage), rule.Rule{Name: "none", Quota: &rule.Quota{}, Window: window.Sliding(time.Hour)}))
		defer e.Close()
		attrs := weir.Attributes("team", "red", "tokens", "100")
		s.set(true, "tokens", "exports", "calls")
		d := do(t, e, step{store.Take, attrs, weir.Receipt{}, false, nil, nil})
		for _, u := range d.Usages {
			if u.Used != 0 || u.Held {
				t.Errorf("%s: got %d used and held %v, want it given back", u.Rule, u.Used, u.Held)
			}
		}
		if got := e.Reports(); got.Pending != 0 || !d.Receipt.IsZero() {
			t.Errorf("got %+v and receipt %v, want none", got, d.Receipt)
		}
	})
}

// A hold that ends in the outage is reported as what it costs.
func TestHoldsThatEndInOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, holdsInOutage)
		defer e.Close()
		attrs := weir.Attributes("team", "red", "tokens", "100")
		s.set(true, "tokens", "exports", "calls")
		d := do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{100, 1, 1}, []bool{true, true, false}})
		time.Sleep(11 * time.Minute)
		do(t, e, step{store.Settle, attrs, d.Receipt, true, []int64{100, 0, 1}, []bool{false, false, false}})
		s.set(false, "tokens", "exports", "calls")
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, nil, nil})
		time.Sleep(2 * time.Second)
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, []int64{100, 0, 1}, []bool{false, false, false}})
	})
}
