package peer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
)

// What is measured has to be a limiter: it admits a quota and denies what is
// over it, and one key has no part in another's.
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
	server, err := measure.StartRedis()
	if err != nil {
		t.Skipf("needs a Redis server: %v", err)
	}
	defer server.Stop()
	for _, p := range peer.Redis() {
		if err := server.Flush(); err != nil {
			t.Fatal(err)
		}
		t.Run(p.Name, func(t *testing.T) {
			// A minute: go-zero's bucket knows no slower rate than one a second.
			c := peer.Config{Quota: 50, Window: time.Minute, Redis: server.Addr}
			limits(t, p, c, c)
		})
	}
}

// limits asks twice a quota of two keys. Another limiter of the kind is there
// meanwhile, and must not change what the first one does.
func limits(t *testing.T, p peer.Peer, c, other peer.Config) {
	l, err := p.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Stop()
	beside, err := p.New(other)
	if err != nil {
		t.Fatal(err)
	}
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
		var admitted int64
		for range 2 * c.Quota {
			if l.Allow(key) {
				admitted++
			}
		}
		// A bucket may get one hit back while it is asked.
		if admitted < c.Quota || admitted > c.Quota+1 {
			t.Errorf("key %q: got %d of %d admitted, want %d", key, admitted, 2*c.Quota, c.Quota)
		}
	}
}

// A clock that is given is the one that counts: no window passes on it while
// it stands still, and a whole one passes at once when it is moved. Sentinel
// has one clock for the whole process, so nothing runs beside this test.
func TestPeersTakeAClock(t *testing.T) {
	for _, p := range peer.Accuracy() {
		if !p.Clock {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			c := peer.Config{Quota: 5, Window: 10 * time.Second, Now: func() time.Time { return now }}
			l, err := p.New(c)
			if err != nil {
				t.Fatal(err)
			}
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
		l, err := p.New(peer.Config{Quota: 5, Window: time.Hour})
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
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
