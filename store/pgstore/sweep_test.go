package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
)

// Rows that have expired are deleted, while calls use others and the same ones.
func TestSweep(t *testing.T) {
	t.Parallel()
	const keys = 3000
	n := pgtest.Server(t)
	s, err := pgstore.Open(t.Context(), n.URL("timeout=30s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	calls := make([]store.Call, keys)
	for i := range calls {
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{op(fmt.Sprint("key", i))}}
	}
	if err := s.Do(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if calls[i].Err != nil {
			t.Fatal(calls[i].Err)
		}
	}
	if got := n.Must("SELECT count(*), count(DISTINCT name), min(name) FROM weir_counters WHERE expires > 0"); got != "3000|3000|posts:key0" {
		t.Fatalf("got %s, want a row of each key", got)
	}
	n.Must("UPDATE weir_counters SET expires = 0 WHERE name <> 'posts:key7'")
	pgtest.Eventually(t, "expired rows are gone", func() bool {
		if _, err := take(t, s, "key7"); err != nil {
			t.Fatal(err)
		}
		return n.Must("SELECT count(*) FROM weir_counters") == "1"
	})
	for _, key := range []string{"key7", "key8"} {
		if _, err := take(t, s, key); err != nil {
			t.Fatal(err)
		}
	}
	if got := used(t, s, "key8"); got != 1 {
		t.Errorf("got %d hits of a key that was swept, want 1", got)
	}
}
