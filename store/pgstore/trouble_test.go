package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// connect opens a store that decides by the server's clock.
func connect(t testing.TB, n *pgtest.Node, options ...string) *pgstore.Store {
	t.Helper()
	return openURL(t, n.URL(append([]string{"timeout=60s", fmt.Sprint("prefix=t", opened.Add(1))}, options...)...))
}

// openURL opens a store, and waits until it is connected. It is closed with the test.
func openURL(t testing.TB, url string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return ready(t, s)
}

// ready waits until a store is connected and has its tables, which a busy machine makes late. It closes the store at
// the end of the test.
func ready(t testing.TB, s *pgstore.Store) *pgstore.Store {
	t.Helper()
	t.Cleanup(func() { s.Close() })
	pgtest.Eventually(t, "the store is connected", func() bool { return !s.Nodes()[0].Unavailable })
	return s
}

// refusalOf returns the error with which the server refuses a store, for which Open does not wait on a busy machine.
func refusalOf(t testing.TB, url string) (err error) {
	t.Helper()
	pgtest.Eventually(t, "the server refuses", func() bool {
		var s *pgstore.Store
		if s, err = pgstore.Open(t.Context(), url); err == nil {
			s.Close()
		}
		return err != nil
	})
	return err
}

var hundred = window.MustCompile(window.Limit{Quota: 100, Window: window.Sliding(time.Hour)})

func op(key string) store.Op {
	return store.Op{Space: store.NewSpace("", "posts", "posts", 0), Limit: hundred, Key: []byte(key), N: 1}
}

// take takes one hit.
func take(t testing.TB, s store.Store, key string) (window.Result, error) {
	ops := []store.Op{op(key)}
	err := store.Do(t.Context(), s, store.Take, ops)
	return ops[0].Result, err
}

func used(t testing.TB, s store.Store, key string) int64 {
	t.Helper()
	o := op(key)
	r, err := s.Read(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

// reason returns the reason of an outage, and whether its call was certainly not counted.
func reason(err error) (store.Reason, bool) {
	var out *store.OutageError
	if !errors.As(err, &out) {
		return "", false
	}
	return out.Reason, out.Uncounted
}

// Connections that the server has ended while they were idle fail no call.
func TestEndedConnections(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := connect(t, n)
	for range 3 {
		n.Must("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE application_name = 'weir'")
		if _, err := take(t, s, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if got := used(t, s, "ann"); got != 3 {
		t.Errorf("got %d hits, want 3", got)
	}
	if nodes := s.Nodes(); nodes[0].Interruptions != 0 {
		t.Errorf("got %+v, want no interruption", nodes)
	}
}

// A caller that is denied gets its answer before the transaction has ended, which then ends soon.
func TestDenialsHoldNoLocks(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := connect(t, n)
	o := op("ann")
	o.N = 101
	if err := store.Do(t.Context(), s, store.Record, []store.Op{o}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if r, err := take(t, s, "ann"); err != nil || r.Allowed {
			t.Fatalf("got %+v, %v, want a denial", r, err)
		}
	}
	pgtest.Eventually(t, "no transaction is open", func() bool {
		return n.Must("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir' AND state LIKE 'idle in%'") == "0"
	})
	if strings.Contains(n.Log(), "idle-in-transaction") {
		t.Error("a transaction ended by its time-out only")
	}
}

// While the server is down calls fail at once, and what was counted is there afterwards.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	changes := make(chan pgstore.Change, 10)
	c, err := pgstore.Parse(n.URL("timeout=60s", "durability=sync"))
	if err != nil {
		t.Fatal(err)
	}
	c.Changed = func(c pgstore.Change) { changes <- c }
	s, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := take(t, s, "ann"); err != nil {
		t.Fatal(err)
	}
	n.Kill()
	if c := <-changes; c.Err == nil || c.Addr != n.Addr() {
		t.Errorf("got change %+v, want the reason of an outage", c)
	}
	pgtest.Eventually(t, "calls are refused", func() bool {
		_, err := take(t, s, "ann")
		why, uncounted := reason(err)
		return why == "refused" && uncounted
	})
	if !s.Nodes()[0].Unavailable || s.Nodes()[0].Interruptions != 1 || s.Nodes()[0].Outages["refused"] == 0 {
		t.Errorf("got %+v, want an interruption", s.Nodes())
	}
	n.Restart()
	if c := <-changes; c.Err != nil || c.Lasted <= 0 || c.Missed == 0 {
		t.Errorf("got change %+v, want the end of the outage", c)
	}
	if got := used(t, s, "ann"); got != 1 {
		t.Errorf("got %d hits, want 1", got)
	}
}

// A server that hangs costs a caller its time-out, and a call that was not decided by then is
// never counted.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := connect(t, n)
	if _, err := take(t, s, "ann"); err != nil {
		t.Fatal(err)
	}
	n.Stop()
	ops := []store.Op{op("ann")}
	err := store.Do(remote.WithTimeout(t.Context(), 50*time.Millisecond), s, store.Take, ops)
	if why, uncounted := reason(err); why != "late" || !uncounted {
		t.Errorf("got %v, want late and not counted", err)
	}
	n.Continue()
	pgtest.Eventually(t, "the store is back", func() bool { _, err := take(t, s, "bob"); return err == nil })
	if got := used(t, s, "ann"); got != 1 {
		t.Errorf("got %d hits, want 1", got)
	}
}

// A store whose server hangs is closed soon. The same holds for its connections, so that a lane can use another server.
func TestCloseWhileServerHangs(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s, err := pgstore.Open(t.Context(), n.URL())
	if err != nil {
		t.Fatal(err)
	}
	n.Stop()
	defer n.Continue()
	if _, err := take(t, s, "ann"); err == nil {
		t.Error("got an answer of a server that hangs")
	}
	closed := make(chan struct{})
	go func() { _ = s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the store is not closed after 10 s")
		<-closed
	}
}

// Tables that were dropped are made again, and no call fails.
func TestDroppedTables(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	for _, tables := range []string{"weir_counters", "weir_counters, weir_meta, weir_log, weir_kept"} {
		if _, err := take(t, s, "ann"); err != nil {
			t.Fatal(err)
		}
		n.Must("DROP TABLE " + tables)
		if r, err := take(t, s, "ann"); err != nil || r.Used != 1 {
			t.Errorf("without %s: got %d hits, %v, want the first one", tables, r.Used, err)
		}
	}
}

// Tables that go together with all connections, or that are emptied, are made again, by a store that runs and by
// one that starts.
func TestLostTables(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := at(t, n)
	for _, change := range []string{
		"DROP TABLE weir_counters, weir_meta, weir_log, weir_kept", "DROP TABLE weir_counters", "TRUNCATE weir_counters, weir_meta, weir_log, weir_kept",
	} {
		if _, err := take(t, s, "ann"); err != nil {
			t.Fatal(err)
		}
		n.Must(change + "; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weir'")
		pgtest.Eventually(t, "the store counts again after "+change, func() bool {
			r, err := take(t, s, "ann")
			return err == nil && r.Used <= 2
		})
		n.Must(change)
		started := at(t, n)
		if _, err := take(t, started, "bob"); err != nil {
			t.Errorf("a store that starts after %s: %v", change, err)
		}
		if err := started.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A user who may make no tables is refused.
func TestRights(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	n.Must("CREATE ROLE app LOGIN")
	if err := refusalOf(t, strings.Replace(n.URL("prefix=other"), "weir@", "app@", 1)); !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("got %v, want that the user may make no tables", err)
	}
}

// Stores that start at the same time make the tables once.
func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t, "-c", "max_connections=200")
	var stores [10]*pgstore.Store
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			var err error
			if stores[i], err = pgstore.Open(t.Context(), n.URL("timeout=60s", "connections=2")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, s := range stores {
		if s == nil {
			continue
		}
		if r, err := take(t, ready(t, s), "ann"); err != nil || r.Used != int64(i+1) {
			t.Errorf("store %d: got %d hits and error %v, want those of all before", i, r.Used, err)
		}
	}
	noErrors(t, n)
}

// noErrors fails the test if the server has logged an error other than of a statement that was given up, as on a busy
// machine.
func noErrors(t *testing.T, n *pgtest.Node) {
	t.Helper()
	for line := range strings.Lines(n.Log()) {
		if strings.Contains(line, "ERROR") && !strings.Contains(line, "canceling statement") {
			t.Errorf("the server's log has %s", line)
		}
	}
}

// Instances that take overlapping keys in any order never wait for each other in a circle, and
// never admit too much.
func TestNoDeadlocks(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t, "-c", "max_connections=100", "-c", "deadlock_timeout=50ms")
	prefix := fmt.Sprint("prefix=t", opened.Add(1))
	var all sync.WaitGroup
	for i := range 3 {
		s := openURL(t, n.URL("timeout=60s", "lock_timeout=0", "idle_in_transaction_session_timeout=0", prefix))
		for j := range 8 {
			all.Go(func() {
				for round := range 50 {
					var ops []store.Op
					for k := range 5 {
						ops = append(ops, op(fmt.Sprint("key", (i+j+round*7+k*(1+round%5))%(10+round))))
					}
					if err := store.Do(t.Context(), s, store.Record, ops); err != nil && !errors.Is(err, store.ErrRepeated) {
						if why, _ := reason(err); why != "late" { // a transaction has 3 s
							t.Errorf("got %v", err)
							return
						}
					}
				}
			})
		}
	}
	all.Wait()
	if got := n.Must("SELECT pg_stat_force_next_flush(); SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"); strings.TrimSpace(got) != "0" {
		t.Errorf("got %s deadlocks, want none", got)
	}
	noErrors(t, n)
}

// Calls that the server refuses fail without a time-out, all of them, and are not counted.
func TestRefusedStatements(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := openURL(t, n.URL("timeout=60s", "connections=1"))
	if _, err := take(t, s, "ann"); err != nil {
		t.Fatal(err)
	}
	n.Must("ALTER TABLE weir_counters RENAME state TO elsewhere")
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			_, err := take(t, s, "ann")
			if why, uncounted := reason(err); why != "refused" || !uncounted {
				t.Errorf("got %v, want refused and not counted", err)
			}
		})
	}
	all.Wait()
	n.Must("ALTER TABLE weir_counters RENAME elsewhere TO state; UPDATE weir_counters SET state = '\\x63'")
	if _, err := take(t, s, "bob"); err != nil {
		t.Error(err)
	}
	calls := []store.Call{{Verb: store.Take, Ops: []store.Op{op("cat"), op("ann")}}, {Verb: store.Take, Ops: []store.Op{op("dan")}}}
	if err := s.Do(t.Context(), calls); err != nil || calls[1].Err != nil {
		t.Errorf("got %v, %v, want the second call counted", err, calls[1].Err)
	}
	var out *store.OutageError
	if !errors.As(calls[0].Err, &out) || out.Reason != "foreign" || len(out.Ops) != 1 || out.Ops[0] != 1 {
		t.Errorf("got %v, want the second op foreign", calls[0].Err)
	}
	o := op("ann")
	if err := s.Forget(t.Context(), &o); err != nil {
		t.Error(err)
	}
	if got := used(t, s, "ann") + used(t, s, "cat"); got != 0 {
		t.Errorf("got %d hits, want none", got)
	}
}

// Rows that a policy hides are not taken for rows that are not there: calls are refused, and so is a start, also
// behind a proxy that refuses settings.
func TestRowSecurity(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	if _, err := take(t, openAs(t, n, pgtest.User), "ann"); err != nil {
		t.Fatal(err)
	}
	n.Must("CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON weir_counters, weir_meta, weir_log, weir_kept TO app")
	port := n.Addr()[strings.LastIndex(n.Addr(), ":")+1:]
	for name, addr := range map[string]string{
		"direct": n.Addr(),
		"proxy":  n.Bouncer("[databases]", "postgres = host=127.0.0.1 user=app port="+port),
	} {
		at := fmt.Sprintf("postgres://app@%s/postgres?sslmode=disable&timeout=10s", addr)
		s := openURL(t, at)
		version, err := s.Keep(t.Context(), "overrides "+name, 0, []string{"ann"}, []string{"limit 0"})
		if err != nil {
			t.Fatal(err)
		}
		for table, calls := range map[string]func() []error{
			"weir_counters": func() []error {
				_, taken := take(t, s, "ann")
				o := op("ann")
				_, read := s.Read(t.Context(), &o)
				return []error{taken, read}
			},
			"weir_kept": func() []error {
				_, _, _, _, err := s.Kept(t.Context(), "overrides "+name, [2]int64{version, version}, 100)
				return []error{err}
			},
		} {
			n.Must("ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY")
			for _, err := range calls() {
				if why, _ := reason(err); why != "refused" {
					t.Errorf("%s, %s: got %v, want refused", name, table, err)
				}
			}
			err := refusalOf(t, at)
			var lacks interface {
				error
				Grant() string
			}
			if !errors.As(err, &lacks) || !strings.Contains(lacks.Error(), table) || lacks.Grant() != "ALTER TABLE "+table+" DISABLE ROW LEVEL SECURITY" {
				t.Errorf("%s, %s: got %v, want a right that is missing", name, table, err)
			}
			n.Must("ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY")
		}
		if got := used(t, s, "ann"); got != 1 {
			t.Errorf("%s: got %d hits, want 1", name, got)
		}
	}
}
