package pgstore_test

import (
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// A store whose tables were dropped makes them again. With new connections it uses what another store has made, with
// the same digests of members.
func TestTablesMadeAnew(t *testing.T) {
	t.Parallel()
	const drop = "DROP TABLE t_counters, t_meta, t_log, t_kept"
	n := pgtest.Server(t)
	first, err := pgstore.Open(t.Context(), n.URL("prefix=t", "timeout=60s"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	members := op("key")
	members.Limit = window.MustCompile(window.Limit{Quota: 10, Measure: window.Distinct, Window: window.Fixed(window.MaxLength)})
	members.Member = []byte("ann")
	take := func(s store.Store) (window.Result, error) {
		ops := []store.Op{members}
		err := store.Do(t.Context(), s, store.Take, ops)
		return ops[0].Result, err
	}
	if _, err := take(first); err != nil {
		t.Fatal(err)
	}
	n.Must(drop)
	pgtest.Eventually(t, "the store has tables again", func() bool { _, err := take(first); return err == nil })
	n.Must(drop)
	second, err := pgstore.Open(t.Context(), n.URL("prefix=t", "timeout=60s"))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	n.Must("SELECT count(pg_terminate_backend(pid, 30000)) FROM pg_stat_activity WHERE application_name = 'weir'")
	for range 20 { // over all connections
		for _, s := range []store.Store{second, first} {
			if r, err := take(s); err != nil || r.Used != 1 {
				t.Fatalf("got %+v, %v, want 1 used", r, err)
			}
		}
	}
}
