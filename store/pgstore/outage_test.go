package pgstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/pgstore"
	"github.com/weirhq/weir/window"
)

// tally has what calls got while a server was in trouble.
type tally struct {
	answered, uncounted, unsure atomic.Int64
	reasons                     sync.Map // of outages
	keys                        atomic.Int64
}

var plenty = window.MustCompile(window.Limit{Quota: 1_000_000_000, Window: window.Fixed(time.Hour)})

// under runs callers of s while trouble does something to the server, until calls are answered again. With
// fresh, each call has a key of its own; otherwise there are eight keys.
func under(t *testing.T, s *pgstore.Store, fresh bool, trouble func(*tally)) *tally {
	t.Helper()
	var got tally
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			for !stop.Load() {
				n := got.keys.Add(1)
				if !fresh {
					n %= 8
				}
				o := op(fmt.Sprint("key", n))
				o.Limit = plenty
				err := store.Do(t.Context(), s, store.Take, []store.Op{o})
				why, uncounted := reason(err)
				switch {
				case err == nil:
					got.answered.Add(1)
					continue
				case uncounted:
					got.uncounted.Add(1)
				default:
					got.unsure.Add(1)
				}
				got.reasons.LoadOrStore(why, err)
			}
		})
	}
	got.more(t, "calls are answered")
	trouble(&got)
	got.more(t, "calls are answered again")
	stop.Store(true)
	callers.Wait()
	var reasons []string
	got.reasons.Range(func(why, _ any) bool { reasons = append(reasons, fmt.Sprint(why)); return true })
	t.Logf("answered %d, outages %d (uncounted) and %d, reasons %v", got.answered.Load(), got.uncounted.Load(), got.unsure.Load(), reasons)
	return &got
}

// more waits until a hundred more calls were answered.
func (y *tally) more(t *testing.T, what string) {
	t.Helper()
	before := y.answered.Load()
	pgtest.Eventually(t, what, func() bool { return y.answered.Load() >= before+100 })
}

// outage waits until calls end with an outage, and returns how many do.
func (y *tally) outage(t *testing.T, why string) {
	t.Helper()
	pgtest.Eventually(t, "calls end with "+why, func() bool {
		found := false
		y.reasons.Range(func(got, _ any) bool { found = found || fmt.Sprint(got) == why; return !found })
		return found
	})
}

// sum returns what is counted for the eight keys.
func sum(t *testing.T, s *pgstore.Store) (all int64) {
	t.Helper()
	for n := range 8 {
		o := op(fmt.Sprint("key", n))
		o.Limit = plenty
		r, err := s.Read(t.Context(), &o)
		if err != nil {
			t.Fatal(err)
		}
		all += r.Used
	}
	return all
}

// exact fails the test unless all answered calls were counted, and of the others at most those that
// are not Uncounted.
func (y *tally) exact(t *testing.T, counted int64) {
	t.Helper()
	if least := y.answered.Load(); counted < least || counted > least+y.unsure.Load() {
		t.Errorf("got %d hits, want %d, and at most %d more", counted, least, y.unsure.Load())
	}
}

// What becomes of the server costs no call that was answered, unless it crashes.
func TestTroubles(t *testing.T) {
	t.Parallel()
	set := func(n *pgtest.Node, setting string) {
		n.Must("ALTER SYSTEM SET " + setting)
		n.Must("SELECT pg_reload_conf()")
	}
	for _, c := range []struct {
		name, options string
		trouble       func(t *testing.T, n *pgtest.Node, got *tally)
		reasons       string // that calls may get
	}{
		{"connections are terminated", "timeout=60s", func(t *testing.T, n *pgtest.Node, _ *tally) {
			for range 5 {
				n.Must("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir'")
			}
		}, "loading closed refused"},
		{"a restart in order", "timeout=60s", func(t *testing.T, n *pgtest.Node, got *tally) {
			n.Shutdown()
			got.outage(t, "refused")
			n.Restart()
		}, "loading closed refused"},
		{"kill -9, sync", "timeout=60s&durability=sync", func(t *testing.T, n *pgtest.Node, got *tally) {
			n.Kill()
			got.outage(t, "refused")
			n.Restart()
		}, "loading closed refused"},
		{"it hangs", "timeout=500ms", func(t *testing.T, n *pgtest.Node, got *tally) {
			n.Stop()
			got.outage(t, "late")
			n.Continue()
		}, "late closed circuit-open busy"},
		{"another program locks the table", "timeout=500ms", func(t *testing.T, n *pgtest.Node, got *tally) {
			unlock := lock(t, n, "LOCK TABLE t_counters")
			got.outage(t, "late")
			unlock()
		}, "late circuit-open closed busy"},
		{"another program locks the table, and calls wait for long", "timeout=60s&lock_timeout=500", func(t *testing.T, n *pgtest.Node, got *tally) {
			unlock := lock(t, n, "LOCK TABLE t_counters")
			got.outage(t, "busy")
			unlock()
		}, "busy"},
		{"it becomes read-only", "timeout=60s", func(t *testing.T, n *pgtest.Node, got *tally) {
			set(n, "default_transaction_read_only = on")
			got.outage(t, "read-only")
			n.Must("ALTER SYSTEM RESET default_transaction_read_only")
			n.Must("SELECT pg_reload_conf()")
		}, "read-only"},
		{"transactions are serializable by default", "timeout=60s", func(t *testing.T, n *pgtest.Node, got *tally) {
			set(n, "default_transaction_isolation = 'serializable'")
			got.more(t, "calls are answered")
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := pgtest.Server(t)
			s := openURL(t, n.URL("prefix=t", c.options))
			got := under(t, s, false, func(y *tally) { c.trouble(t, n, y) })
			got.exact(t, sum(t, s))
			got.reasons.Range(func(why, err any) bool {
				if !strings.Contains(" "+c.reasons+" ", fmt.Sprintf(" %v ", why)) {
					t.Errorf("got reason %v, want one of %s: %v", why, c.reasons, err)
				}
				return true
			})
			if strings.Contains(n.Log(), "could not serialize") {
				t.Error("got a transaction that could not be serialized")
			}
		})
	}
}

// A crash loses the decisions of its last moments, and no others.
func TestCrash(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	s := openURL(t, n.URL("timeout=500ms"))
	var early int64
	got := under(t, s, false, func(y *tally) {
		early = y.answered.Load()
		at := n.Must("SELECT pg_current_wal_insert_lsn()")
		pgtest.Eventually(t, "what was counted is written", func() bool {
			return n.Must("SELECT pg_current_wal_flush_lsn() >= '"+at+"'") == "t"
		})
		n.Kill()
		y.outage(t, "refused")
		n.Restart()
	})
	if counted := sum(t, s); counted < early || counted > got.answered.Load()+got.unsure.Load() {
		t.Errorf("got %d hits, want at least the first %d, and at most %d", counted, early, got.answered.Load()+got.unsure.Load())
	} else {
		t.Logf("lost %d", got.answered.Load()-counted)
	}
}

// When a standby is promoted, a store that knows both servers counts there.
func TestFailover(t *testing.T) {
	t.Parallel()
	first := pgtest.Server(t)
	second := first.Standby()
	url := fmt.Sprintf("postgres://%s@%s,%s/postgres?sslmode=disable&timeout=500ms", pgtest.User, first.Addr(), second.Addr())
	s := openURL(t, url)
	var early int64
	got := under(t, s, false, func(y *tally) {
		early = y.answered.Load()
		at := first.Must("SELECT pg_current_wal_insert_lsn()")
		pgtest.Eventually(t, "the standby has what was counted", func() bool {
			return second.Must("SELECT pg_last_wal_replay_lsn() >= '"+at+"'") == "t"
		})
		first.Kill()
		y.outage(t, "read-only") // from the standby
		second.Promote()
	})
	if counted := sum(t, s); counted < early || counted > got.answered.Load()+got.unsure.Load() {
		t.Errorf("got %d hits, want at least the first %d, and at most %d", counted, early, got.answered.Load()+got.unsure.Load())
	} else {
		t.Logf("lost %d", got.answered.Load()-counted)
	}
	if second.Must("SELECT count(*) > 0 FROM weir_counters") != "t" {
		t.Error("the second server has no counters")
	}
}

// Behind one address a failover is followed: connections that accept no writes are left as soon as new ones do. Until
// then reads go on, and a new connection is tried once a second.
func TestFailoverBehindAnAddress(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t, "-c", "log_connections=on")
	n.Must("CREATE ROLE app LOGIN; CREATE SCHEMA app AUTHORIZATION app")
	s := openAs(t, n, "app")
	if _, err := take(t, s, "ann"); err != nil {
		t.Fatal(err)
	}
	n.Must("ALTER ROLE app SET default_transaction_read_only = on") // on new connections, as if they led to a standby
	n.Must("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE usename = 'app'")
	began := time.Now()
	for range 300 {
		_, err := take(t, s, "ann")
		if why, uncounted := reason(err); why != "read-only" || !uncounted {
			t.Fatalf("got %v, want read-only and not counted", err)
		}
		if got := used(t, s, "ann"); got != 1 {
			t.Fatalf("got %d hits, want 1", got)
		}
	}
	const lanes = 4
	most := 2*lanes + 2 + int(time.Since(began).Seconds())
	if got := strings.Count(n.Log(), "connection authorized: user=app"); got > most {
		t.Errorf("got %d connections, want at most %d", got, most)
	}
	since := n.Must("ALTER ROLE app RESET default_transaction_read_only; SELECT now()")
	pgtest.Eventually(t, "calls count", func() bool { _, err := take(t, s, "ann"); return err == nil })
	pgtest.Eventually(t, "no connection is left that accepts no writes", func() bool {
		return n.Must("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND backend_start < '"+since+"'") == "0"
	})
}

// A full disk is an outage of the calls that need more of it, and nothing is counted by halves.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk, err := os.MkdirTemp("", "pgtest-disk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(disk) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m,mode=777", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small disk: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() }) // after the server
	n := pgtest.Server(t)
	s := openURL(t, n.URL("timeout=2s"))
	n.Own(disk)
	n.Must("CREATE TABLESPACE small LOCATION '" + disk + "'")
	n.Must("ALTER TABLE weir_counters SET TABLESPACE small")
	filler := filepath.Join(disk, "filler")
	got := under(t, s, true, func(y *tally) {
		_ = os.WriteFile(filler, make([]byte, 7<<20), 0o600) // as much as there is
		y.outage(t, "full")
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
	})
	var rows int64
	if _, err := fmt.Sscan(n.Must("SELECT count(*) FROM weir_counters WHERE state <> ''"), &rows); err != nil {
		t.Fatal(err)
	}
	got.exact(t, rows)
}
