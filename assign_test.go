package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// lagging is a store whose replicas confirm nothing.
type lagging struct{ store.Store }

func (l lagging) Do(ctx context.Context, calls []store.Call) error {
	err := l.Store.Do(ctx, calls)
	for i := range calls {
		if calls[i].Err == nil {
			calls[i].Err = &store.OutageError{Reason: "unconfirmed", Err: errors.New("lags")}
		}
	}
	return err
}

// A grant that no replica has confirmed is assigned, and settled as any other. If the policy denies, nothing is assigned, and
// nothing stays counted.
func TestUnconfirmedGrants(t *testing.T) {
	t.Parallel()
	for policy, want := range map[rule.Outage]int64{rule.OutageAllow: 8, rule.OutageLocal: 8, rule.OutageDeny: 0} {
		s := memstore.New()
		t.Cleanup(func() { _ = s.Close() })
		e := engine(t, []rule.Rule{
			{Name: "all", Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour)},
			{Name: "q", Per: []string{"user"}, Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour), OnOutage: policy},
		}, weir.WithStore(lagging{s}))
		assign := func(a run.Assignment) run.Assignment {
			asks := []run.Assignment{a}
			if _, err := e.Run(t.Context(), []weir.Item{{Request: weir.Request{Attributes: weir.Attributes("user", "ann")}}}, run.Options{Assign: asks}); err != nil || asks[0].Err != nil {
				t.Fatal(err, asks[0].Err)
			}
			return asks[0]
		}
		used := func(when string, want int64) {
			for _, name := range []string{"all", "q"} {
				if u, err := e.Usage(t.Context(), name, weir.Attributes("user", "ann")); err != nil || u.Used != want {
					t.Errorf("%v, %s: got %d used of %s and error %v, want %d", policy, when, u.Used, name, err, want)
				}
			}
		}
		a := assign(run.Assignment{Want: 8, Length: time.Minute})
		if a.Granted != want {
			t.Errorf("%v: got %d granted, want %d", policy, a.Granted, want)
		}
		used("granted", want)
		assign(run.Assignment{Settles: []run.Settle{{ID: a.ID, Spent: 3}}, Used: 3})
		used("settled", min(want, 3))
	}
}
