package weir_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/durable"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// unknown is a shaky store whose secret is not known, as that of a server that was never reached.
type unknown struct{ *shaky }

func (unknown) Secrets(bool, ...[16]byte) [][16]byte { return nil }

// A hold of an outage can be settled by the next process, also if it starts in the same outage.
func TestHoldsOfAnOutageOutliveTheProcess(t *testing.T) {
	t.Parallel()
	rules := []rule.Rule{{
		Name: "r", Per: []string{"user"}, Measure: window.Sum, Of: "n", Quota: &rule.Quota{Value: 1000},
		Window: window.Sliding(time.Hour), Hold: time.Hour,
	}}
	s := &shaky{Store: memstore.New(), out: map[string]bool{}}
	defer s.Close()
	s.set(true, "r")
	dir := t.TempDir()
	request := func(n string) weir.Request {
		return weir.Request{Attributes: weir.Attributes("user", "ann", "n", n)}
	}

	local, err := durable.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t, rules, weir.WithStore(s), weir.WithLocal(local, 1))
	taken, err := e.Take(t.Context(), request("300"))
	if err != nil || !taken.Degraded {
		t.Fatalf("got %+v, %v, want a take of local memory", taken, err)
	}
	e.Close()
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}

	if local, err = durable.Open(dir); err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	e = engine(t, rules, weir.WithStore(unknown{s}), weir.WithLocal(local, 1))
	defer e.Close()
	d, err := e.Settle(t.Context(), taken.Receipt, request("50"))
	if err != nil || !d.Usages[0].Held || d.Usages[0].Used != 50 {
		t.Errorf("got %+v, %v, want held and 50 used", d, err)
	}

	// Its receipts are valid at an instance that knows the secret of the store, which sends the end of the hold later.
	if taken, err = e.Take(t.Context(), request("300")); err != nil || !taken.Degraded {
		t.Fatalf("got %+v, %v, want a take of local memory", taken, err)
	}
	other := engine(t, rules, weir.WithStore(s))
	defer other.Close()
	if d, err = other.Settle(t.Context(), taken.Receipt, request("50")); err != nil || other.Reports().Pending != 1 {
		t.Errorf("got %+v, %v and %+v, want the end of a hold pending", d, err, other.Reports())
	}
}
