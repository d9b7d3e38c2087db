package peer_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
	"github.com/weirhq/weir/internal/pgtest"
)

// Every measured limiter must admit a quota, deny hits over it, and count keys
// separately.
func TestPeersLimit(t *testing.T) {
	t.Parallel()
	for _, p := range append(peer.Hot(), peer.Million()...) {
		t.Run(p.Name, func(t *testing.T) {
			limits(t, p, peer.Config{Quota: 5, Window: time.Hour}, peer.Config{Quota: 7, Window: time.Minute})
		})
	}
}

func TestPeersLimitOverRedis(t *testing.T) {
	t.Parallel()
	var server *measure.Redis
	if err := measure.Try(func() { server = measure.StartRedis(false) }); err != nil {
		if os.Getenv("WEIR_REQUIRE_REDIS") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs a Redis server: %v", err)
	}
	defer server.Stop()
	for _, p := range append(peer.Redis(), peer.Batched()...) {
		server.Flush()
		t.Run(p.Name, func(t *testing.T) {
			// A minute, because go-zero's bucket has no rate below one hit a second.
			c := peer.Config{Quota: 50, Window: time.Minute, Redis: server.Addr}
			limits(t, p, c, c)
		})
	}
}

func TestPeersLimitOverPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, "-c", "max_connections=300")
	for _, p := range peer.Postgres() {
		server.Must("DROP TABLE IF EXISTS bounded, weir_counters, weir_meta")
		t.Run(p.Name, func(t *testing.T) {
			c := peer.Config{Quota: 50, Window: time.Hour, Postgres: server.URL()}
			limits(t, p, c, c)
		})
	}
}

// limits takes twice the quota of two keys. A second limiter of the same kind
// runs meanwhile and must not change the answers of the first one.
func limits(t *testing.T, p peer.Peer, c, other peer.Config) {
	l, beside := p.New(c), p.New(other)
	defer l.Stop()
	defer beside.Stop()
	if p.Kind != peer.Limits {
		if !l.Allow(peer.HotKey) {
			t.Error("got false of a row that cannot deny, want true")
		}
		return
	}
	keys := []string{peer.HotKey}
	if p.Keys {
		keys = append(keys, "another key of 24 bytes.")
	}
	for _, key := range keys {
		began, admitted := time.Now(), int64(0)
		for range 2 * c.Quota {
			if l.Allow(key) {
				admitted++
			}
		}
		// Meanwhile a bucket leaks, and the next window of the clock may begin.
		ended := time.Now()
		most := c.Quota + 1 + int64(float64(c.Quota)*ended.Sub(began).Seconds()/c.Window.Seconds())
		if !ended.Truncate(c.Window).Equal(began.Truncate(c.Window)) {
			most = 2 * c.Quota
		}
		if admitted < c.Quota || admitted > most {
			t.Errorf("key %q: got %d of %d admitted, want %d", key, admitted, 2*c.Quota, c.Quota)
		}
	}
}

// A limiter must use the given clock: no window passes while the clock stands,
// and a whole window passes when the clock is set forward. Sentinel has one clock
// for the process, so this test is not parallel.
func TestPeersTakeAClock(t *testing.T) {
	for _, p := range peer.Accuracy() {
		if !p.Clock {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			c := peer.Config{Quota: 5, Window: 10 * time.Second, Now: func() time.Time { return now }}
			l := p.New(c)
			defer l.Stop()
			var got []int
			for range 2 {
				admitted := 0
				for range 10 {
					if l.Allow(peer.HotKey) {
						admitted++
					}
				}
				got = append(got, admitted)
				now = now.Add(3 * c.Window)
			}
			if fmt.Sprint(got) != "[5 5]" {
				t.Errorf("got %v admitted before and after the window, want [5 5]", got)
			}
		})
	}
}

func TestEngineRowsAdmit(t *testing.T) {
	t.Parallel()
	for _, p := range peer.Engine() {
		l := p.New(peer.Config{Quota: 5, Window: time.Hour})
		admitted := 0
		for range 10 {
			if l.Allow("") {
				admitted++
			}
		}
		l.Stop()
		if admitted != 5 {
			t.Errorf("%s: got %d admitted, want 5", p.Name, admitted)
		}
	}
}

func TestWindowsSum(t *testing.T) {
	t.Parallel()
	for _, w := range peer.Windows() {
		add, sum := w.New()
		for range 7 {
			add()
		}
		if got := sum(); got != 7 {
			t.Errorf("%s: got a sum of %d, want 7", w.Name, got)
		}
	}
}
