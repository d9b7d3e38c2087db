package pgstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// at opens a store on the tables that other stores of the test use.
func at(t testing.TB, n *pgtest.Node, options ...string) *pgstore.Store {
	t.Helper()
	return openURL(t, n.URL(append(options, "timeout=20s")...))
}

// Changes of several processes to a register do not fail, whatever isolation the database has by default.
func TestChangesUnderSerializable(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	n.Must("ALTER SYSTEM SET default_transaction_isolation = 'serializable'")
	n.Must("SELECT pg_reload_conf()")
	var all sync.WaitGroup
	for range 4 {
		s := at(t, n)
		all.Go(func() {
			version := int64(0)
			for turn := range 100 {
				now, err := s.Keep(t.Context(), "r", version, []string{"field"}, []string{fmt.Sprint(turn)})
				if err != nil {
					t.Error(err)
					return
				}
				if version = now; now == 0 {
					_, _, next, _, err := s.Kept(t.Context(), "r", [2]int64{}, 10)
					if version = next[0]; err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// A receipt of one process is valid in the others, after a restart of the server and a
// rotation of the secret too.
func TestReceiptsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	engine := func(s *pgstore.Store) *weir.Engine {
		rules, err := rule.New([]rule.Rule{{
			Name: "tokens", Per: []string{"team"}, Quota: &rule.Quota{Value: 10}, Window: window.Sliding(time.Hour), Hold: time.Hour,
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := weir.NewEngine(rules, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := at(t, n), at(t, n)
	first, second := engine(one), engine(two)
	request := weir.Request{Attributes: weir.Attributes("team", "red")}
	take := func() weir.Receipt {
		d, err := first.Take(t.Context(), request)
		if err != nil || !d.Allowed {
			t.Fatalf("got %+v, %v, want it allowed", d, err)
		}
		return d.Receipt
	}
	settle := func(r weir.Receipt) {
		t.Helper()
		d, err := second.Settle(t.Context(), r, request)
		if err != nil || len(d.Usages) != 1 || !d.Usages[0].Held {
			t.Errorf("got %+v, %v, want it settled", d, err)
		}
	}
	settle(take())
	receipt := take()
	if err := two.RotateSecret(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	n.Kill()
	n.Restart()
	if got := n.Must("SELECT count(*) FROM weir_meta WHERE name = 'secret'"); got != "1" {
		t.Errorf("after a crash: got %s secrets, want 1", got)
	}
	pgtest.Eventually(t, "all connections are back", func() bool {
		for range 50 { // enough that each of them gets a call
			if d, err := second.Check(t.Context(), request); err != nil || d.Degraded {
				return false
			}
		}
		return true
	})
	settle(receipt)
	if got := at(t, n).Secrets(false); len(got) != 2 || !slices.Equal(got, two.Secrets(false)) {
		t.Errorf("got %d secrets in another process, want the same 2", len(got))
	}
	n.Must("ALTER SYSTEM SET default_transaction_read_only = on")
	n.Must("SELECT pg_reload_conf()")
	pgtest.Eventually(t, "a store that is opened while the database is read-only knows the secret", func() bool {
		return slices.Equal(at(t, n).Secrets(false), two.Secrets(false))
	})
	n.Must("ALTER SYSTEM RESET default_transaction_read_only")
	n.Must("SELECT pg_reload_conf()")
	pgtest.Eventually(t, "the database is writable", func() bool {
		_, err := n.Do("UPDATE weir_meta SET value = 'swordfish' WHERE name = 'secret'")
		return err == nil
	})
	if err := one.RotateSecret(t.Context(), time.Hour); err == nil || !strings.Contains(n.Must("SELECT value FROM weir_meta WHERE name = 'secret'"), "7377") {
		t.Errorf("a value of another program: got %v", err)
	}
}

// Of two stores that drop old removals from a register, the one that has seen fewer does not hide those of the other.
func TestTrimKept(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	version := int64(0)
	remove := func(count int) {
		t.Helper()
		fields := make([]string, count)
		for i := range fields {
			fields[i] = fmt.Sprint(version, i)
		}
		now, err := s.Keep(t.Context(), "r", version, fields, make([]string, count))
		if err != nil || now == 0 {
			t.Fatalf("got %d, %v", now, err)
		}
		version = now
	}
	forgotten := func() string { return n.Must("SELECT value FROM weir_kept WHERE name = 'r' AND field = ''") }
	remove(10)
	first := forgotten()
	remove(1001)
	if forgotten() == first {
		t.Error("got no removal forgotten of more than 1,000")
	}
	n.Must("UPDATE weir_kept SET value = int8send(version) WHERE name = 'r' AND field = ''") // as another store has just done
	later := forgotten()
	remove(1)
	if got := forgotten(); got != later {
		t.Errorf("got removals forgotten up to %s after %s", got, later)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	for range 3 {
		if _, err := take(t, s, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Inspect(t.Context(), "posts:ann")
	if err != nil || !strings.Contains(page, "name     posts:ann\n") || !strings.Contains(page, "expires  20") || strings.Count(page, "ago\n") != 3 {
		t.Errorf("got %v, %s\nwant a page with three instants", err, page)
	}
	key := strings.Fields(page)[1]
	if again, err := s.Inspect(t.Context(), key); err != nil || !strings.Contains(again, "name     posts:ann\n") {
		t.Errorf("by its key %q: got %v, %s", key, err, again)
	}
	if _, err := s.Inspect(t.Context(), "posts:bob"); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("got %v, want that there is no such key", err)
	}
	n.Must("UPDATE weir_counters SET state = '\\x63'")
	if page, err := s.Inspect(t.Context(), "posts:ann"); err != nil || !strings.Contains(page, "no counter") {
		t.Errorf("got %v, %s, want that it is no counter", err, page)
	}
}

// level returns the level and the line of a check.
func level(t testing.TB, s *pgstore.Store, check string) string {
	t.Helper()
	findings, err := s.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == check {
			return fmt.Sprintf("%s %s", f.Level, f)
		}
	}
	t.Fatalf("got %v, want the check %s", findings, check)
	return ""
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t, "-c", "max_connections=70", "-c", "fsync=on")
	s := at(t, n)
	want := func(s *pgstore.Store, check string, words ...string) {
		t.Helper()
		got := level(t, s, check)
		for _, w := range words {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got %q, want %q in it", check, got, w)
			}
		}
	}
	findings, err := s.Diagnose(t.Context())
	if err != nil || len(findings) != 10 {
		t.Errorf("got %v, %v, want ten findings", findings, err)
	}
	for _, f := range findings {
		if f.Level != "ok" && f.Check != "round-trip" || f.Node != n.Addr() || f.Seen == "" || f.Level == "warn" && f.Fix == "" {
			t.Errorf("got %+v", f)
		}
	}
	want(s, "version", "ok PostgreSQL ")
	want(s, "durability", "ok async")
	want(at(t, n, "durability=unlogged"), "durability", "warn durability=unlogged, and the table was made otherwise", "SET UNLOGGED")
	want(at(t, n, "durability=unlogged", "prefix=other"), "durability", "ok unlogged")
	want(at(t, n, "connections=40"), "connections", "warn ")

	n.Must("CREATE ROLE app LOGIN; GRANT SELECT ON weir_counters, weir_meta TO app")
	app := openURL(t, strings.Replace(n.URL("timeout=20s"), "weir@", "app@", 1))
	want(app, "rights", "refuse app lacks ", "UPDATE on weir_counters", "GRANT ")
	n.Must("GRANT SELECT, INSERT, UPDATE, DELETE ON weir_counters, weir_meta, weir_log, weir_kept TO app")
	want(app, "rights", "ok")
	if _, err := take(t, app, "ann"); err != nil {
		t.Errorf("with these rights: got %v", err)
	}
	if got := app.Secrets(false); len(got) != 1 {
		t.Errorf("with these rights: got %d secrets", len(got))
	}
}
