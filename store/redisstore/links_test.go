package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

// connections returns the numbers of a store's connections to n, as n sees them, from the
// oldest to the newest: two that calls share, and more when the server seems to be distant, as it
// does on a busy machine.
func connections(t *testing.T, n *redistest.Node) []string {
	t.Helper()
	list := fmt.Sprint(n.Must("CLIENT", "LIST"))
	all := named.FindAllString(ids.ReplaceAllString(list, "id=$1 name=$2 "), -1)
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	return all
}

// oldest returns the first of them.
func oldest(t *testing.T, n *redistest.Node, most int) string {
	t.Helper()
	all := connections(t, n)
	return fmt.Sprint(all[:min(len(all), most)])
}

// keepsClients waits until s has all connections, and returns a function that checks that it
// still has the same shared ones. A busy machine may let the server stand still until the store
// notices, which is an interruption and replaces them.
func keepsClients(t *testing.T, s *redisstore.Store, n *redistest.Node) (check func()) {
	t.Helper()
	connected(t, s, 1)
	redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, n)) >= 2 })
	before, interruptions := oldest(t, n, 2), s.Nodes()[0].Interruptions
	return func() {
		t.Helper()
		if after := oldest(t, n, 2); after != before && s.Nodes()[0].Interruptions == interruptions {
			t.Errorf("connections: got %s, want %s as before", after, before)
		}
	}
}

var (
	ids   = regexp.MustCompile(`id=(\d+) [^\n]*? ?name=(\S*) [^\n]*`)
	named = regexp.MustCompile(`id=\d+ name=weir `)
)

// Callers that give up early do not close the connection that others use.
func TestImpatientCallersCloseNothing(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	same := keepsClients(t, s, n)
	n.Stop()
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			if err := store.Do(ctx, s, store.Take, []store.Op{hourly(quota, "rule", "k")}); err == nil {
				t.Error("got an answer of a server that stands still")
			}
		})
	}
	callers.Wait()
	n.Continue()
	if got := used(t, s, hourly(quota, "rule", "k")); got != 0 {
		t.Errorf("used: got %d, want 0", got)
	}
	same()
}

// All connections are there, and all programs, before the first call; and again
// after a loss of everything, without any call.
func TestReadyBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	began := time.Now()
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	if time.Since(began) > time.Second { // a busy machine: the first attempt may have failed, or goes on
		redistest.Eventually(t, "all connections are there, without a call", func() bool { return len(connections(t, n)) >= 2 })
	}
	first := oldest(t, n, 2)
	scripts := n.Info("number_of_cached_scripts")
	if len(connections(t, n)) < 2 || scripts == "0" {
		t.Fatalf("got connections %s and %s scripts", first, scripts)
	}
	take(t, s, hourly(quota, "rule", "k"))
	if got := n.Info("number_of_cached_scripts"); got != scripts {
		t.Errorf("a call has loaded scripts: got %s, want %s as before", got, scripts)
	}
	if got := oldest(t, n, 2); got != first {
		t.Errorf("a call has made connections: got %s, want %s", got, first)
	}
	n.Kill()
	n.Restart()
	redistest.Eventually(t, "all scripts are there again", func() bool { return n.Info("number_of_cached_scripts") == scripts })
}

// Calls that wait for replicas, and batches of them, make no connections either.
func TestWaitReplicasIsReadyBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Replica()
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s&wait_replicas=1")
	const all = 6 // two that calls share, and four for calls that wait
	redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, n)) >= all })
	before := oldest(t, n, all)
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			if err := store.Do(context.Background(), s, store.Take, []store.Op{hourly(quota, "rule", "k")}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := do(t, s, takes(300, hourly(quota, "rule", ""))); got != 0 {
		t.Errorf("batch: got %d outages, want none", got)
	}
	if got := connections(t, n); len(got) > all+2 || oldest(t, n, all) != before { // a distant server has two more
		t.Errorf("calls have made connections: got %s, want %s", got, before)
	}
	if got := used(t, s, hourly(quota, "rule", "k")); got != 64 {
		t.Errorf("used: got %d, want 64", got)
	}
}

// Calls to a server at a distance are spread over connections, so that a stalled segment delays
// a part of them only.
func TestDistantCallsAreSpread(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	p := redistest.Through(t, n)
	s := openURL(t, "redis://"+p.Addr()+"?timeout=20s")
	connected(t, s, 1)
	loading := commands(t, n, "evalsha")
	p.Delay(10 * time.Millisecond)
	redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, n)) == 4 })
	if got := commands(t, n, "evalsha"); got != loading {
		t.Errorf("the connections of a distant node have loaded programs again: got %d EVALSHA, want %d", got, loading)
	}
	var mu sync.Mutex
	chunks := map[string]int{}
	p.Before(func(from string) {
		mu.Lock()
		defer mu.Unlock()
		chunks[from]++
	})
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 10 {
				if err := store.Do(t.Context(), s, store.Take, []store.Op{hourly(quota, "rule", "k")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	delete(chunks, n.Addr()) // answers
	requests := 0
	for _, some := range chunks {
		requests += some
	}
	for from, some := range chunks {
		if some > requests/2 {
			t.Errorf("connection from %s: got %d of all %d chunks of requests, want a quarter or so", from, some, requests)
		}
	}
	if len(chunks) < 4 {
		t.Errorf("got %d connections in use, want 4 or more", len(chunks))
	}
}

// A store without calls notices that its server stands still within two seconds, whatever the
// time-out: wherever in an idle check, or one of the library, the server stops.
func TestIdleStoreNoticesWithALongTimeout(t *testing.T) {
	t.Parallel()
	for chunk := range int64(6) {
		t.Run(fmt.Sprint("before chunk ", chunk), func(t *testing.T) {
			t.Parallel()
			n := redistest.Server(t)
			p := redistest.Through(t, n)
			s := openURL(t, "redis://"+p.Addr()+"?timeout=20s")
			redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, n)) >= 2 })
			var passed atomic.Int64
			clock, stopped := redistest.Clock(t), make(chan time.Duration, 1)
			p.Before(func(string) {
				if passed.Add(1) == chunk+1 {
					n.Stop()
					stopped <- clock()
				}
			})
			began := <-stopped
			redistest.Eventually(t, "the circuit breaker is open", func() bool { return s.Nodes()[0].Unavailable })
			if took := clock() - began; took > 10*time.Second {
				t.Errorf("noticed after %v, want 2s", took)
			}
			n.Continue()
			redistest.Eventually(t, "the store is back", func() bool { return !s.Nodes()[0].Unavailable })
		})
	}
}

// A caller that was in flight when the server stopped, and has left, does not make the store
// notice later than one without calls.
func TestStoreNoticesBehindACallerThatLeaves(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	n.Stop()
	clock := redistest.Clock(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := store.Do(ctx, s, store.Take, []store.Op{hourly(quota, "rule", "k")}); err == nil {
		t.Error("got an answer of a server that stands still")
	}
	redistest.Eventually(t, "the circuit breaker is open", func() bool { return s.Nodes()[0].Unavailable })
	if took := clock(); took > 12*time.Second {
		t.Errorf("noticed after %v, want a moment after the 3s of the caller", took)
	}
	n.Continue()
}
