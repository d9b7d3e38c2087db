package pgstore_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// Rows that have expired are deleted, while calls use others and the same ones.
func TestSweep(t *testing.T) {
	t.Parallel()
	const keys = 3000
	n := pgtest.Server(t)
	s := openURL(t, n.URL("timeout=30s"))
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

// Denials of a rule that denies nobody any more, and events that wait for a webhook which was removed, are deleted,
// however many there are. What else logs and registers have stays.
func TestSweepAged(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	logs := []string{"audit/default", "denials-hashed/default/quiet", "denials/default/gone", "denials/default/often"}
	registers := []string{"events", "events/dead", "events/removed", "overrides"}
	write := func(logs, registers []string, entries int) {
		t.Helper()
		for _, name := range logs {
			for from := 0; from < entries; from += 200 {
				var at []window.Instant
				var texts []string
				for i := range min(200, entries-from) {
					at, texts = append(at, window.At(time.Now())), append(texts, fmt.Sprint(from+i))
				}
				if _, err := s.Log(t.Context(), name, window.MaxLength, at, texts, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, name := range registers {
			if now, err := s.Keep(t.Context(), name, 0, []string{"a", "b"}, []string{"somebody", ""}); err != nil || now == 0 {
				t.Fatalf("got %d, %v", now, err)
			}
		}
	}
	write(logs, registers, 1500)
	n.Must("UPDATE weir_log SET at = at - 25 * 3600000000; UPDATE weir_kept SET version = version - 26 * 3600000000")
	write(logs[3:], []string{"events/live"}, 1)
	n.Must("UPDATE weir_log SET at = at - 23 * 3600000000 WHERE entry = '0'; UPDATE weir_kept SET version = version - 24 * 3600000000 WHERE name = 'events/live'")
	at(t, n)
	pgtest.Eventually(t, "what is too old is deleted", func() bool {
		return n.Must("SELECT string_agg(name || ' ' || n, ', ' ORDER BY name) FROM (SELECT name, count(*) n FROM weir_log GROUP BY name) logs") == "audit/default 1500, denials/default/often 1" &&
			n.Must("SELECT string_agg(name || ' ' || n, ', ' ORDER BY name) FROM (SELECT name, count(*) n FROM weir_kept GROUP BY name) registers") == "events 3, events/live 3, overrides 3"
	})
}

// The table stops growing while new keys come all the time and old ones expire. With WEIR_PG_RATE there are so many
// calls in a second for an hour, or for WEIR_PG_FOR, each of one of a million keys with a window of ten minutes, by a
// server with its own settings: see make bloat.
func TestSizeIsBounded(t *testing.T) {
	t.Parallel()
	calls, margin, length, settings := 150_000, 500*time.Millisecond, 100*time.Millisecond, []string{"-c", "autovacuum_naptime=1s"}
	visitor := func(i int) string { return fmt.Sprintf("visitor%016d", i) }
	rate, _ := strconv.Atoi(os.Getenv("WEIR_PG_RATE"))
	if rate > 0 {
		lasts, err := time.ParseDuration(cmp.Or(os.Getenv("WEIR_PG_FOR"), "1h"))
		if err != nil {
			t.Fatal(err)
		}
		calls, margin, length, settings = int(lasts.Seconds()*float64(rate)), time.Minute, 10*time.Minute, nil
		visitor = func(int) string { return fmt.Sprintf("visitor%016d", rand.IntN(1_000_000)) }
	} else if testing.Short() {
		t.Skip("takes half a minute")
	}
	n := pgtest.Server(t, settings...)
	s, err := pgstore.OpenSwept(t.Context(), n.URL("timeout=30s"), margin)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	limit := window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(length)})
	visitors := make(chan string, 100)
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for visitor := range visitors {
				o := op(visitor)
				o.Limit = limit
				if err := store.Do(t.Context(), s, store.Take, []store.Op{o}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	size := func() (bytes int64) {
		if _, err := fmt.Sscan(n.Must("SELECT pg_total_relation_size('weir_counters')"), &bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	var most, first int64 // of the second half, and of the first
	began := time.Now()
	for i := range calls {
		visitors <- visitor(i)
		if i%max(1, cmp.Or(rate, 5000)/100) == 0 { // a fast machine would outrun autovacuum
			<-pace.C
		}
		if i%(calls/20) == 0 {
			now := size()
			if t.Logf("%4.0f s, %d calls, %s rows: %d MB", time.Since(began).Seconds(), i, n.Must("SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'weir_counters'"), now>>20); i < calls/2 {
				first = max(first, now)
			} else {
				most = max(most, now)
			}
		}
	}
	close(visitors)
	callers.Wait()
	if each := int64(200); most > first+first/2 || rate == 0 && most > int64(calls)*each/2 {
		t.Errorf("got %d bytes, and %d in the first half, want that the table does not grow", most, first)
	}
}
