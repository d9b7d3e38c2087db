package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// A call that read the clock before takes of a hot key is dated after them, also
// when a call for another key, with an old reading too, has taken the hot key's
// place meanwhile.
func TestLateCallIsDatedAfterHotTakes(t *testing.T) {
	t.Parallel()
	now, during := window.Instant(1e15), func() {}
	s := memstore.New(memstore.WithShards(1), memstore.WithMachine(func() (steady, wall window.Instant) {
		at, f := now, during
		during = func() {}
		f()
		return at, at
	}))
	defer s.Close()
	space := store.NewSpace("", "id", "", 0)
	// Ten at once, and one for each second.
	declared := window.Limit{Quota: 10, Window: window.Bucket(10*time.Second, 0)}
	l, reloaded := window.MustCompile(declared), window.MustCompile(declared)
	take := func(limit *window.Compiled, key string, n int64, meanwhile func()) window.Result {
		t.Helper()
		during = meanwhile
		r, err := one(t.Context(), s, store.Take, space, limit, key, "", n)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	nothing := func() {}
	take(l, "k", 1, nothing)
	memstore.PromoteAll(memstore.KeyspaceOf(s, space))
	full := func() { // ten seconds with as many hits as drain
		for range 10 {
			now = now.Add(time.Second)
			take(l, "k", 1, nothing)
		}
	}
	// One of 32 keys has the slot of k, and gets it when it asks twice. The call
	// under the reloaded limit locks.
	for i := range 200 {
		now = now.Add(time.Hour)
		for range 3 {
			take(l, "k", 1, nothing)
		}
		other := fmt.Sprint("other", i)
		r := take(reloaded, "k", 5, func() {
			take(l, other, 1, func() { take(l, other, 1, full) })
		})
		if !r.Allowed {
			t.Fatalf("with %s: got %+v, want allowed: the bucket always had room for seven", other, r)
		}
	}
}
