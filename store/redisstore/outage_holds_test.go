package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// A hold that memory gave while Redis stood still is in Redis afterwards, with its
// end: other instances count it, and the receipt ends it there and here.
func TestHoldsOfAnOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	rules := []rule.Rule{
		{Name: "exports", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Held(time.Hour)},
		{Name: "tokens", Per: []string{"user"}, Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour), Hold: time.Hour},
	}
	one, other := engineOn(t, openURL(t, "redis://"+n.Addr()+"?timeout=500ms"), 1, rules...), engineOn(t, openURL(t, "redis://"+n.Addr()+"?timeout=500ms"), 1, rules...)
	request := weir.Request{Attributes: weir.Attributes("user", "ann")}
	n.Stop()
	d, err := one.Take(t.Context(), request)
	n.Continue()
	if err != nil || !d.Allowed || !d.Degraded || d.Receipt.IsZero() {
		t.Fatalf("in the outage: got %+v and error %v, want it allowed, degraded and held", d, err)
	}
	redistest.Eventually(t, "the holds are reported", func() bool { return one.Reports().Recorded >= 2 })

	used := func() (places, tokens int64) {
		var d weir.Decision
		redistest.Eventually(t, "Redis answers", func() bool {
			d, err = other.Check(t.Context(), request)
			return err == nil && !d.Degraded
		})
		all := d.Usages
		return all[0].Used, all[1].Used
	}
	if places, tokens := used(); places != 1 || tokens != 1 {
		t.Errorf("reported: got %d places and %d tokens, want 1 and 1", places, tokens)
	}
	for again := range 2 {
		ended, err := one.Cancel(t.Context(), d.Receipt, request)
		all := ended.Usages
		if err != nil || all[0].Held != (again == 0) || all[1].Held != (again == 0) {
			t.Errorf("cancel %d: got %+v and error %v, want it held once", again+1, ended, err)
		}
		if places, tokens := used(); places != 0 || tokens != 0 {
			t.Errorf("cancel %d: got %d places and %d tokens in Redis, want none", again+1, places, tokens)
		}
	}
}

// A hold of Redis that ends while Redis stands still, or while the circuit breaker is open, ends there soon after, also if
// nobody sends its end again, and also under rules that memory does not decide.
func TestEndsInAnOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	rules := []rule.Rule{
		{Name: "exports", Per: []string{"user"}, Quota: &rule.Quota{Value: 50}, Window: window.Held(time.Hour)},
		{Name: "tokens", Per: []string{"user"}, Measure: window.Sum, Of: "tokens", Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Hold: time.Hour, OnOutage: rule.OutageDeny},
	}
	one, other := engineOn(t, openURL(t, "redis://"+n.Addr()+"?timeout=500ms"), 1, rules...), engineOn(t, openURL(t, "redis://"+n.Addr()+"?timeout=500ms"), 1, rules...)
	estimate := weir.Request{Attributes: weir.Attributes("user", "ann", "tokens", "10")}
	var receipts []weir.Receipt
	for range 12 {
		d, err := one.Take(t.Context(), estimate)
		if err != nil || !d.Allowed || d.Degraded {
			t.Fatalf("take: got %+v and error %v, want it allowed by Redis", d, err)
		}
		receipts = append(receipts, d.Receipt)
	}
	settle := func(i int) weir.Decision {
		cost := weir.Request{Attributes: weir.Attributes("user", "ann", "tokens", "3"), IdempotencyKey: fmt.Sprint(i)}
		d, err := one.Settle(t.Context(), receipts[i], cost)
		if err != nil {
			t.Errorf("settle %d: %v", i, err)
		}
		return d
	}
	n.Stop()
	for i := range 8 {
		if d := settle(i); !d.Degraded {
			t.Errorf("settle %d: got %+v, want it degraded", i, d)
		}
	}
	for i, receipt := range receipts[8:] {
		if d, err := one.Cancel(t.Context(), receipt, estimate); err != nil || !d.Degraded {
			t.Errorf("cancel %d: got %+v and error %v, want it degraded", i, d, err)
		}
	}
	n.Continue()
	redistest.Eventually(t, "the holds have ended in Redis", func() bool {
		d, err := other.Check(t.Context(), estimate)
		return err == nil && !d.Degraded && d.Usages[0].Used == 0 && d.Usages[1].Used == 8*3
	})
	redistest.Eventually(t, "nothing is pending", func() bool { return one.Reports() == weir.Reports{} })
	for i := range 8 { // with its key
		redistest.Eventually(t, "Redis answers", func() bool { return !settle(i).Degraded })
	}
	if d, err := other.Check(t.Context(), estimate); err != nil || d.Usages[1].Used != 8*3 {
		t.Errorf("settled again: got %+v and error %v, want %d tokens", d, err, 8*3)
	}
}
