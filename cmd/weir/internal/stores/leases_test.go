package stores_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Leases of three instances on each kind of store, of keys in different slots of a cluster: no more than the quota is admitted, nearly all of it is,
// and the store knows of every admission.
func TestLeases(t *testing.T) {
	t.Parallel()
	servers := map[string]func(*testing.T) string{
		"cluster": func(t *testing.T) string { return "redis+cluster://" + redistest.Cluster(t, 3, 0).Addrs() },
	}
	for scheme, serve := range oneServer {
		servers[scheme] = func(t *testing.T) string { url, _ := serve(t); return url }
	}
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLeases(t, serve(t))
		})
	}
}

func testLeases(t *testing.T, url string) {
	const quota, instances, keys = 6000, 3, "abcd"
	// Its leases last a second.
	limit := window.MustCompile(window.Limit{Quota: quota, Window: window.Sliding(time.Hour), Lease: window.LeaseStrict})
	spaces := [2]*store.Space{store.NewSpace("", "one", "one", 0), store.NewSpace("", "two", "two", 0)}
	opOf := func(space int, key byte) store.Op {
		return store.Op{Space: spaces[space], Limit: limit, Key: []byte{key}, Together: []byte{key}, N: 1}
	}
	ctx := remote.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	var all []store.Store
	for range instances {
		at, err := stores.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := at.Open(t.Context(), stores.Options{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, leasestore.New(s, func() int { return instances }))
	}
	var admitted [len(keys)]atomic.Int64
	var callers sync.WaitGroup
	for i := range 4 * instances {
		callers.Go(func() {
			for n := range 4 * quota / instances {
				at := (n/64 + i) % len(keys) // a burst on one key, so that it gets hot
				ops := []store.Op{opOf(0, keys[at]), opOf(1, keys[(at+i%2)%len(keys)])}
				if i%3 > 0 {
					ops = ops[:1]
				}
				if err := store.Do(ctx, all[i%instances], store.Take, ops); err != nil {
					t.Error(err)
					return
				}
				if !slices.ContainsFunc(ops, func(op store.Op) bool { return !op.Result.Allowed }) {
					admitted[at].Add(1)
				}
			}
		})
	}
	callers.Wait()
	var sum hook.Leases
	for _, s := range all[1:] {
		n := s.(hook.Leaser).Leases()
		sum.Granted, sum.Asked, sum.Settled, sum.Direct = sum.Granted+n.Granted, sum.Asked+n.Asked, sum.Settled+n.Settled, sum.Direct+n.Direct
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("two instances: %+v", sum)
	if sum.Granted == 0 {
		t.Error("nothing was leased")
	}
	for i := range admitted {
		op := opOf(0, keys[i])
		r, err := all[0].Read(ctx, &op) // settles what is leased by this instance
		n := admitted[i].Load()
		if err != nil || n > quota || n < quota*9/10 || r.Used < n || r.Used > quota {
			t.Errorf("key %c: got %d admitted, %d used and %v, want at most %d, nearly all, and all of them used", keys[i], n, r.Used, err, quota)
		}
	}
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
}
