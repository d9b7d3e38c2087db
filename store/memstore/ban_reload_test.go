package memstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A ban outlives sweeps also where the limit that made the keyspace had no ban.
func TestBanThatReloadAddedOutlivesSweeps(t *testing.T) {
	t.Parallel()
	now := window.Instant(1e15)
	s := memstore.New(memstore.WithMachine(func() (steady, wall window.Instant) { return now, now }), memstore.WithShards(1))
	defer s.Close()
	space := store.NewSpace("", "id", "", 0)
	plain := window.Limit{Quota: 1, Window: window.Fixed(time.Second)}
	bans := plain
	bans.Ban = window.Ban{For: time.Hour}
	take := func(l window.Limit, key string) window.Result {
		t.Helper()
		r, err := one(t.Context(), s, store.Take, space, window.MustCompile(l), key, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	take(plain, "other")
	take(bans, "k")
	if r := take(bans, "k"); !r.Banned {
		t.Fatalf("got %+v, want banned", r)
	}
	if got := memstore.TallyOf(s, space).Banned; got != 1 {
		t.Errorf("got %d banned keys, want 1", got)
	}
	now = now.Add(10 * time.Second)
	s.Sweep(1000)
	if r := take(bans, "k"); !r.Banned {
		t.Errorf("got %+v after a sweep, want banned", r)
	}
}

// A hold that ended and is kept drains from a bucket at the rate of its own key,
// also where a key with a larger quota came first.
func TestKeptHoldOfASmallQuotaOutlivesSweeps(t *testing.T) {
	t.Parallel()
	now := window.Instant(1e15)
	s := memstore.New(memstore.WithMachine(func() (steady, wall window.Instant) { return now, now }), memstore.WithShards(1))
	defer s.Close()
	space := store.NewSpace("", "id", "", 0)
	take := func(quota int64, key string, id byte) window.Result {
		t.Helper()
		l := window.MustCompile(window.Limit{Quota: quota, Window: window.Bucket(time.Minute, 0), Hold: time.Second})
		op := hit("", l, key)
		op.Space, op.Hold = space, &store.Hold{Hold: window.Hold{ID: [12]byte{id}}}
		ops := []store.Op{op}
		if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Result
	}
	take(1000, "large", 1)
	if r := take(1, "small", 2); !r.Held {
		t.Fatalf("got %+v, want held", r)
	}
	now = now.Add(10 * time.Second)
	s.Sweep(1000)
	if r := take(1, "small", 3); r.Allowed || r.RetryAfter != 51*time.Second {
		t.Errorf("got %+v after a sweep, want denied until a minute after the end of the hold", r)
	}
}
