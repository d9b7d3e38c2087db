package weir_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
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

// Once a hold was reported, only the store ends it: a settle in a second outage does not say that it has. The caller can
// repeat it, or leave that to the report.
func TestReportedHoldsEndInTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, holdsInOutage)
		defer e.Close()
		attrs, truth := weir.Attributes("team", "red", "tokens", "100"), weir.Attributes("team", "red", "tokens", "40")
		s.set(true, "tokens", "exports", "calls")
		d := do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{100, 1, 1}, []bool{true, true, false}})
		s.set(false, "tokens", "exports", "calls")
		time.Sleep(2 * time.Second)
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, []int64{100, 1, 1}, []bool{false, false, false}})

		s.set(true, "tokens", "exports", "calls")
		do(t, e, step{store.Settle, truth, d.Receipt, true, []int64{40, 0, 1}, []bool{false, false, false}})
		s.set(false, "tokens", "exports", "calls")
		do(t, e, step{store.Settle, truth, d.Receipt, true, []int64{40, 0, 1}, []bool{true, true, false}})
		do(t, e, step{store.Settle, truth, d.Receipt, true, []int64{40, 0, 1}, []bool{false, false, false}})
		time.Sleep(2 * time.Second)
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, []int64{40, 0, 1}, []bool{false, false, false}})
	})
}

// What the store holds ends in an outage, of which the store hears afterwards. With a forged receipt nothing ends.
func TestHoldsOfTheStoreEndInOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := shakyEngine(t, holdsInOutage)
		defer e.Close()
		attrs, truth := weir.Attributes("team", "red", "tokens", "100"), weir.Attributes("team", "red", "tokens", "40")
		var all []weir.Decision
		for n := range int64(3) {
			all = append(all, do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{100 * (n + 1), n + 1, n + 1}, []bool{true, true, false}}))
		}
		s.set(true, "tokens", "exports", "calls")
		do(t, e, step{store.Settle, truth, all[0].Receipt, true, nil, nil})
		do(t, e, step{store.Cancel, attrs, all[1].Receipt, true, nil, nil})
		forged := all[2].Receipt
		forged.Take.ID[0]++
		do(t, e, step{store.Settle, weir.Attributes("team", "blue", "tokens", "40"), forged, true, nil, nil})
		do(t, e, step{store.Settle, truth, forged, true, nil, nil})
		if got := e.Reports(); got.Pending != 2+4 {
			t.Errorf("got %+v, want the ends of two rules pending, and four until the receipt is known to be forged", got)
		}
		s.set(false, "tokens", "exports", "calls")
		time.Sleep(2 * time.Second)
		// A cancel also gives back what a rule without a hold has counted, so it is the caller's to repeat.
		do(t, e, step{store.Cancel, attrs, all[1].Receipt, true, []int64{40 + 100, 1, 2}, []bool{true, true, false}})
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, []int64{40 + 100, 1, 2}, []bool{false, false, false}})
		time.Sleep(12 * time.Second)
		do(t, e, step{store.Check, attrs, weir.Receipt{}, true, []int64{40 + 100, 1, 2}, []bool{false, false, false}})
		if got := e.Reports(); got != (weir.Reports{}) {
			t.Errorf("got %+v, want nothing pending or recorded", got)
		}
	})
}

// unanswered is a shaky store that loses reports.
type unanswered struct{ *shaky }

func (s unanswered) Do(ctx context.Context, calls []store.Call) error {
	if calls[0].Verb != store.Record {
		return s.shaky.Do(ctx, calls)
	}
	for i := range calls {
		calls[i].Err = &store.OutageError{Err: errOut}
	}
	return nil
}

// A worker whose place the store has given to another one does not renew it, although local memory still counts it.
func TestPlacesOfOneWorker(t *testing.T) {
	t.Parallel()
	lock := []rule.Rule{{Name: "lock", Per: []string{"job"}, Quota: &rule.Quota{Value: 1}, Window: window.Held(5 * time.Second)}}
	attrs := weir.Attributes("job", "nightly")
	renew := func(t *testing.T, e *weir.Engine, of weir.Decision, held bool) {
		t.Helper()
		if d := do(t, e, step{store.Renew, attrs, of.Receipt, true, nil, nil}); d.Usages[0].Held != held {
			t.Fatalf("got held %v, want %v", d.Usages[0].Held, held)
		}
	}
	take := func(t *testing.T, e *weir.Engine) weir.Decision {
		t.Helper()
		return do(t, e, step{store.Take, attrs, weir.Receipt{}, true, []int64{1}, []bool{true}})
	}
	t.Run("the store's hold ends in a second outage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, s := shakyEngine(t, lock)
			defer e.Close()
			s.set(true, "lock")
			first := take(t, e)
			renew(t, e, first, true)
			s.set(false, "lock")
			renew(t, e, first, true) // it waits for the report
			time.Sleep(2 * time.Second)
			renew(t, e, first, true)
			s.set(true, "lock")
			for range 4 {
				time.Sleep(2 * time.Second)
				renew(t, e, first, true) // local memory decides, and gives the place to nobody else
			}
			s.set(false, "lock")
			second := take(t, e)
			renew(t, e, first, false)
			renew(t, e, second, true)
		})
	})
	t.Run("the report is lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &shaky{Store: memstore.New(), out: map[string]bool{"lock": true}}
			defer s.Close()
			e := engine(t, lock, weir.WithStore(unanswered{s}))
			defer e.Close()
			first := take(t, e)
			s.set(false, "lock")
			time.Sleep(2 * time.Second)
			second := take(t, e)
			renew(t, e, first, false)
			renew(t, e, second, true)
		})
	})
}
