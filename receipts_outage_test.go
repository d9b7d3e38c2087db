package weir_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/remote"
)

// servers are a shaky store that keeps a secret.
type servers struct {
	*shaky
	secret []byte // guarded by mu
}

// instance is the store of one instance on servers.
type instance struct {
	*shaky
	secrets *remote.Secrets
}

func (i instance) Secrets(again bool, own ...[16]byte) [][16]byte {
	return i.secrets.List(again, own...)
}

func (s *servers) instance() instance {
	return instance{s.shaky, &remote.Secrets{
		Background: func(f func()) bool { go f(); return true },
		Agree: func(_ context.Context, own []byte) ([]byte, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.out["tokens"] {
				return nil, errOut
			}
			if s.secret == nil {
				s.secret = own
			}
			return s.secret, nil
		},
		Replace: func(_ context.Context, old, next []byte) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !slices.Equal(s.secret, old) {
				return false, errors.New("changed")
			}
			s.secret = next
			return true, nil
		},
	}}
}

// An instance that starts in an outage and one that runs do not know each other's secrets. What one of them has taken and the
// other one has ended then, or soon after, has ended when both know them.
func TestReceiptsOfOtherInstancesInOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servers{shaky: &shaky{Store: memstore.New(), out: map[string]bool{}}}
		defer s.Close()
		start := func() *weir.Engine {
			return engine(t, holdsInOutage[:2], weir.WithStore(s.instance()), weir.WithNodes(func() int { return 2 }))
		}
		attrs, truth := weir.Attributes("team", "red", "tokens", "100"), weir.Attributes("team", "red", "tokens", "40")
		take := func(e *weir.Engine, place seal.Place) weir.Receipt {
			t.Helper()
			d, err := e.Take(t.Context(), weir.Request{Attributes: attrs})
			if err != nil || d.Receipt.Take.Place != place {
				t.Fatalf("got %+v, %v, want a receipt of place %d", d, err, place)
			}
			return d.Receipt
		}
		settle := func(e *weir.Engine, r weir.Receipt, degraded bool) {
			t.Helper()
			d, err := e.Settle(t.Context(), r, weir.Request{Attributes: truth})
			if err != nil || d.Degraded != degraded || d.Usages[0].Held {
				t.Errorf("got %+v, %v, want degraded %v and nothing held", d, err, degraded)
			}
		}
		one, idle := start(), start()
		take(idle, seal.Store)
		before, canceled, forged := take(one, seal.Store), take(one, seal.Store), take(one, seal.Store)
		s.set(true, "tokens", "exports")
		two := start()
		during := take(two, seal.Local)
		own := take(idle, seal.Local) // which ends nothing in the outage
		settle(one, during, true)
		settle(one, during, true)
		settle(two, before, true)
		if d, err := two.Cancel(t.Context(), canceled, weir.Request{Attributes: attrs}); err != nil || !d.Degraded {
			t.Errorf("got %+v, %v, want it degraded", d, err)
		}
		forged.Take.At++
		settle(two, forged, true)
		s.set(false, "tokens", "exports")
		settle(one, take(two, seal.Store), true)
		settle(idle, take(two, seal.Store), true)
		if d, err := idle.Settle(t.Context(), own, weir.Request{Attributes: truth}); err != nil {
			t.Errorf("got %+v, %v", d, err)
		}
		time.Sleep(5 * time.Second)
		left := []int64{5*40 + 2*100, 2}
		do(t, one, step{verb: 0, attrs: attrs, allowed: true, used: left, held: []bool{false, false}})
		time.Sleep(10 * time.Second)
		settle(two, forged, false)
		do(t, one, step{verb: 0, attrs: attrs, allowed: true, used: left, held: []bool{false, false}})
		for _, e := range []*weir.Engine{one, two, idle} {
			if got := e.Reports(); got.Pending != 0 || got.Lost != 0 || got.Dropped != 0 {
				t.Errorf("got %+v, want nothing pending", got)
			}
		}
	})
}
