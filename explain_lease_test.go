package weir_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Explain says where a rule whose quota is leased was decided, and nothing of others.
func TestExplainSaysWhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := compile(t, []rule.Rule{
			{Name: "leased", Per: []string{"c"}, Quota: &rule.Quota{Value: 10_000}, Window: window.Sliding(time.Second), Lease: window.LeaseStrict},
			{Name: "credit", Per: []string{"c"}, Quota: &rule.Quota{Value: 10_000}, Window: window.Sliding(time.Second), Lease: 50},
			{Name: "plain", Per: []string{"c"}, Quota: &rule.Quota{Value: 10_000}, Window: window.Sliding(time.Second)},
		})
		shared := leasestore.New(memstore.New(), func() int { return 2 })
		e := engineOf(t, set, weir.WithStore(shared))
		defer shared.Close()
		r := weir.Request{Attributes: weir.Attributes("c", "ann")}
		want := func(reasons ...string) {
			t.Helper()
			_, why, err := e.Explain(t.Context(), r)
			past := append(slices.Clone(reasons), "each instance can admit 50 past the quota")
			if err != nil || !slices.Equal(why[0].Reasons, reasons) || !slices.Equal(why[1].Reasons, past) || len(why[2].Reasons) != 0 {
				t.Errorf("got %+v, %v, want the reasons %q, %q, and none", why, err, reasons, past)
			}
		}
		want("decided by the store: nothing is leased here")
		for range 100 {
			if _, err := e.Take(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Microsecond)
		}
		want("decided by this instance, from a lease")
		time.Sleep(time.Minute)
		want("decided by the store: nothing is leased here")
	})
}

// In an outage Explain says nothing of where a leased rule was decided, also if policies decided rules before it without
// numbers.
func TestExplainLeasesInOutage(t *testing.T) {
	t.Parallel()
	leased := func(name string, o rule.Outage) rule.Rule {
		return rule.Rule{Name: name, Per: []string{"c"}, Quota: &rule.Quota{Value: 10_000}, Window: window.Sliding(time.Second), Lease: window.LeaseStrict, OnOutage: o}
	}
	s := &shaky{Store: memstore.New(), out: map[string]bool{"a": true, "b": true, "c": true}}
	shared, local := leasestore.New(s, func() int { return 2 }), memstore.New()
	t.Cleanup(func() { shared.Close(); local.Close() })
	e := engine(t, []rule.Rule{leased("a", rule.OutageAllow), leased("b", rule.OutageLocal), leased("c", rule.OutageAllow)},
		weir.WithStore(shared), weir.WithLocal(local, 2))
	d, why, err := e.Explain(t.Context(), weir.Request{Attributes: weir.Attributes("c", "ann")})
	if err != nil || !d.Degraded || len(why) != 3 {
		t.Fatalf("got %+v, %+v, %v, want three rules in an outage", d, why, err)
	}
	for _, w := range why {
		if len(w.Reasons) > 0 || (w.Usage != nil) != (w.Rule == "b") {
			t.Errorf("got %+v, want no reasons, and numbers of b alone", w)
		}
	}
}
