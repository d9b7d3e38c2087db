package pgstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// keyOf returns the key of a rule with these values.
func keyOf(values ...string) (k []byte) {
	for _, v := range values {
		k = append(binary.AppendUvarint(k, uint64(len(v))), v...)
	}
	return k
}

// Keys that a name cannot have are counted as unknown, and all others are known.
func TestKeysOfNames(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	known := [][]byte{
		keyOf("ann", "x"), keyOf("a\nb\x1b\x7f", ""), keyOf("é…"), keyOf("a,b", ",,"), keyOf("", "", "", "", "", "", "", "", "", ""),
		keyOf(strings.Repeat("x", 1800)), keyOf(`\000\n`), []byte("raw\tkey"), {},
	}
	unknown := [][]byte{
		keyOf("a\x00b"), keyOf("\xff"), keyOf(strings.Repeat("x", 3000)), keyOf(strings.Repeat("é", 1500)), keyOf(",,,,,,,", ""),
	}
	all := slices.Concat(known, unknown)
	for _, exports := range []bool{true, false} {
		namespace := ""
		if !exports {
			namespace = strings.Repeat("n", 64) // no room for the key in a name
		}
		limit := window.MustCompile(window.Limit{Quota: 9, Window: window.Fixed(time.Hour), Export: exports})
		record := func(id string, key []byte) {
			op := store.Op{Space: store.NewSpace(namespace, id, strings.Repeat("r", 100), 0), Limit: limit, Key: key, N: 1}
			if err := store.Do(t.Context(), s, store.Record, []store.Op{op}); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range all {
			record("id", key)
		}
		if exports {
			record("id2", all[0]) // of another rule with the same name
		}
		got, nils := map[string]bool{}, 0
		op := store.Op{Space: store.NewSpace(namespace, "id", strings.Repeat("r", 100), 0), Limit: limit}
		for after, first := []byte(nil), true; first || after != nil; first = false {
			var err error
			if after, err = s.Keys(t.Context(), &op, after, func(key []byte, _ window.State, _ window.Instant) {
				if key == nil {
					nils++
				} else {
					got[string(key)] = true
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bool{}
		if exports {
			for _, key := range known {
				want[string(key)] = true
			}
		}
		if exports && !maps.Equal(got, want) {
			t.Errorf("got keys %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		if len(got)+nils != len(all) {
			t.Errorf("exported %v: got %d keys and %d that are not known, want %d", exports, len(got), nils, len(all))
		}
	}
}

// A page has fewer keys if their states can be large, because a process has all of them in memory.
func TestPagesOfLargeStates(t *testing.T) {
	t.Parallel()
	s := at(t, pgtest.Server(t))
	w := window.Sliding(time.Hour)
	w.Precision = window.MaxEntries
	op := store.Op{Space: store.NewSpace("", "id", "rule", 0), Limit: window.MustCompile(window.Limit{Quota: window.MaxEntries, Window: w}), N: 1}
	calls := make([]store.Call, 300)
	for i := range calls {
		own := op
		own.Key = fmt.Append(nil, "k", i)
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{own}}
	}
	if err := s.Do(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	found, pages := 0, 0
	for after := []byte(nil); ; pages++ {
		before := found
		next, err := s.Keys(t.Context(), &op, after, func([]byte, window.State, window.Instant) { found++ })
		if err != nil {
			t.Fatal(err)
		}
		if got := found - before; got > 210 {
			t.Errorf("got %d keys of a page, with up to 80 KB each, want at most 16 MB", got)
		}
		if after = next; after == nil {
			break
		}
	}
	if found != 300 {
		t.Errorf("got %d keys, want 300", found)
	}
}

// Keys waits for a decision whose commit is not visible yet: what is said about a period must not change later.
func TestKeysWaitForCommits(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	limit := window.MustCompile(window.Limit{Quota: window.MaxHits, Window: window.Fixed(time.Hour), Export: true})
	op := store.Op{Space: store.NewSpace("", "id", "rule", 0), Limit: limit, Key: keyOf("ann"), N: 1}
	if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
		t.Fatal(err)
	}
	n.Must("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	n.Must("SELECT pg_reload_conf()")
	pgtest.Eventually(t, "new sessions wait for a standby", func() bool { return n.Must("SHOW synchronous_standby_names") == "nobody" })
	taker := openURL(t, n.URL("timeout=60s", "durability=sync"))
	admin, err := pgconn.Connect(t.Context(), n.URL()) // psql would take long to start
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	found := func(what, who string) bool {
		r, err := admin.Exec(t.Context(), "SELECT "+what+" FROM pg_stat_activity WHERE application_name = 'weir' AND "+who).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return len(r[0].Rows) > 0
	}
	const waits = "wait_event = 'SyncRep'"
	var calls sync.WaitGroup
	calls.Go(func() { _ = store.Do(t.Context(), taker, store.Take, []store.Op{op}) }) // it ends before its commit on a machine that stands still
	pgtest.Eventually(t, "a commit waits", func() bool { return found("1", waits) })
	calls.Go(func() {
		used, began := int64(0), time.Now()
		_, err := s.Keys(t.Context(), &op, nil, func(_ []byte, state window.State, now window.Instant) { used += limit.Read(state, now).Used })
		if took := time.Since(began); took < pgstore.WritersFor && (err != nil || used != 2) {
			t.Errorf("after %v: got %d used and error %v, want 2 with that of the commit", took, used, err)
		}
	})
	pgtest.Eventually(t, "an export waits for the commit", func() bool { return found("1", "query LIKE '%virtualtransaction%'") })
	found("pg_cancel_backend(pid)", waits) // the commit waits no more
	calls.Wait()
}
