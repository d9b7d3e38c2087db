package server_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

// onStore returns a change that makes a service count on n, with a time-out for
// a busy machine.
func onStore(t *testing.T, n *redistest.Node, nodes int) func(*config.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, "rules: [{name: hits, per: [user], limit: 1000, window: 1h}]")
	return func(c *config.Config) {
		c.Rules, c.Store, c.StoreTimeout, c.Nodes = file, "redis://"+n.Addr(), patience, nodes
	}
}

// startOnStore starts a service and waits until its store answers. On a busy machine that
// may take longer than a start waits for it.
func startOnStore(t *testing.T, change func(*config.Config)) *service {
	t.Helper()
	s := start(t, change)
	s.reachesStore(t)
	return s
}

func (s *service) reachesStore(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the store answers", func() bool {
		return call(t, "GET", s.admin+"/readyz", "").text == "ready\n"
	})
}

// Two services on one Redis admit together what the rule admits, no more and
// no less.
func TestTwoServicesCountTogether(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	services := []*service{startOnStore(t, onStore(t, n, 2)), startOnStore(t, onStore(t, n, 2))}
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 100 {
				a := call(t, "POST", services[i%2].api+"/v1/take", `{"attributes":{"user":"42"}}`)
				if a.json["allowed"] == true {
					admitted.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if got := admitted.Load(); got != 1000 {
		t.Errorf("admitted: got %d, want 1000", got)
	}
}

// Services that lease admit together no more than the rule does, and ask the store less often than they decide.
func TestServicesLease(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	change := func(c *config.Config) {
		onStore(t, n, 2)(c)
		write(t, c.Rules, "rules: [{name: hits, per: [user], limit: 1000, window: 1h, lease: strict}]")
	}
	services := []*service{startOnStore(t, change), startOnStore(t, change)}
	scripts := func() int { // how many scripts have run
		_, calls, _ := strings.Cut(n.Info("cmdstat_evalsha"), "calls=")
		calls, _, _ = strings.Cut(calls, ",")
		count, err := strconv.Atoi(calls)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	before := scripts()
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for range 150 {
				a := call(t, "POST", services[i%2].api+"/v1/take", `{"attributes":{"user":"42"}}`)
				if a.json["allowed"] == true {
					admitted.Add(1)
				}
			}
		})
	}
	callers.Wait()
	asked := scripts() - before
	if got := admitted.Load(); got > 1000 || got < 900 {
		t.Errorf("admitted: got %d, want 1000, or a few less", got)
	}
	if asked > 800 {
		t.Errorf("got %d scripts for 2400 decisions", asked)
	}
	if page := call(t, "GET", services[0].admin+"/metrics", "").text; !strings.Contains(page, `weir_lease_calls_total{call="lease"} `) {
		t.Errorf("got no metrics of leases in %s", page)
	}
}

// Namespaces count apart in one Redis. The keys of the default one are those of a
// service without namespaces.
func TestNamespacesOnRedis(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	file, dir := rulesFile(t, posts(5)), rulesDir(t, map[string]string{"default.yaml": posts(5), "a.yaml": posts(2), "b.yaml": posts(3)})
	of := func(rules string) func(*config.Config) {
		return func(c *config.Config) {
			c.Rules, c.Store, c.StoreTimeout, c.Nodes = rules, "redis://"+n.Addr(), patience, 1
		}
	}
	alone, s := startOnStore(t, of(file)), startOnStore(t, of(dir))
	for range 2 {
		alone.post(t, "ann")
	}
	for name, want := range map[string]int{"default": 3, "a": 2, "b": 3} {
		if got := s.postsIn(t, name, "ann"); got != want {
			t.Errorf("namespace %s: got %d posts, want %d", name, got, want)
		}
	}
	keys, _ := n.Must("KEYS", "weir:{ann}:*").([]any)
	var got []string
	for _, k := range keys {
		name := k.(string)
		got = append(got, name[:strings.LastIndexByte(name, ':')])
	}
	slices.Sort(got)
	if want := []string{"weir:{ann}:a/posts", "weir:{ann}:b/posts", "weir:{ann}:posts"}; !slices.Equal(got, want) {
		t.Errorf("got keys %v, want %v", got, want)
	}
}

// Without its Redis a service goes on, says so, and counts there again when it
// is back.
func TestServiceOutlivesItsStore(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := startOnStore(t, onStore(t, n, 4))
	take := func() answer { return call(t, "POST", s.api+"/v1/take", `{"attributes":{"user":"42"}}`) }
	if a := take(); a.json["allowed"] != true || a.json["degraded"] == true {
		t.Errorf("with the store: got %s", a.text)
	}
	n.Kill()
	redistest.Eventually(t, "the circuit breaker is open", func() bool {
		a := take()
		if a.json["allowed"] != true || a.json["degraded"] != true || !strings.Contains(a.text, `"quota":250`) {
			t.Errorf("without the store: got %s, want a share of 250", a.text)
		}
		if reason, _ := a.json["degraded_reason"].(string); !slices.Contains([]string{"late", "refused", "circuit-open", "closed"}, reason) {
			t.Errorf("without the store: got reason %q, want one of Redis", reason)
		}
		return strings.Contains(call(t, "GET", s.admin+"/readyz", "").text, "store unavailable (1 of 1 nodes)")
	})
	if a := call(t, "GET", s.api+"/v1/usage?rule=hits&user=42", ""); a.json["degraded"] != true || a.json["quota"] != 250.0 {
		t.Errorf("usage without the store: got %s, want a share of 250, degraded", a.text)
	}
	if a := call(t, "GET", s.api+"/readyz", ""); a.status != 200 || !strings.HasPrefix(a.text, "ready\n") {
		t.Errorf("readiness: got %d %q, want ready all the same", a.status, a.text)
	}
	metrics := call(t, "GET", s.admin+"/metrics", "").text
	if want := fmt.Sprintf(`weir_store_circuit_open{node=%q} 1`, n.Addr()); !strings.Contains(metrics, want+"\n") {
		t.Errorf("metrics: got no line %s", want)
	}
	s.logs.await(t, 1, "store unavailable")
	n.Restart()
	redistest.Eventually(t, "the store answers again", func() bool { return take().json["degraded"] != true })
	s.logs.await(t, 1, "store answers again")
	s.logs.await(t, 1, "decisions without the store")
	s.logs.await(t, 1, "decisions with the store again")
	if a := call(t, "GET", s.api+"/v1/usage?rule=hits&user=42", ""); a.json["degraded"] != nil {
		t.Errorf("usage afterwards: got %s, want nothing about degraded", a.text)
	}
	if a := call(t, "GET", s.api+"/readyz", ""); a.text != "ready\n" {
		t.Errorf("readiness afterwards: got %q, want ready", a.text)
	}
}

// What a namespace has counted in an outage is recorded in the store, even if its file was away meanwhile.
func TestNamespaceAwayInAnOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	dir := rulesDir(t, map[string]string{"default.yaml": posts(5), "a.yaml": posts(3)})
	s := startOnStore(t, func(c *config.Config) {
		c.Rules, c.Store, c.StoreTimeout, c.Nodes = dir, "redis://"+n.Addr(), patience, 1
	})
	n.Kill()
	if got := s.postsIn(t, "a", "ann"); got != 3 {
		t.Fatalf("without the store: got %d posts, want 3", got)
	}
	reload := func() {
		t.Helper()
		if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 200 {
			t.Fatalf("reload: got %s", a.text)
		}
	}
	file := filepath.Join(dir, "a.yaml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	reload()
	write(t, file, posts(3))
	reload()
	n.Restart()
	redistest.Eventually(t, "the hits are recorded", func() bool {
		a := call(t, "GET", s.api+"/ns/a/v1/usage?rule=posts&user=ann&action=post", "")
		return a.json["degraded"] == nil && a.json["used"] == 3.0
	})
}

// A service that must have its store is not ready without it; one whose store
// refuses it does not start.
func TestServiceNeedsItsStore(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--requirepass", "right")
	change := onStore(t, n, 1)
	cfg := config.Default()
	change(&cfg)
	err := server.Run(t.Context(), cfg, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "NOAUTH") || !strings.Contains(err.Error(), n.Addr()) {
		t.Errorf("without its password: got %v, want NOAUTH of %s", err, n.Addr())
	}
	s := start(t, func(c *config.Config) {
		change(c)
		c.Store, c.ReadyNeedsStore = "redis://:right@"+n.Addr(), true
	})
	ready := func() int { return call(t, "GET", s.api+"/readyz", "").status }
	redistest.Eventually(t, "ready with its store", func() bool { return ready() == 200 })
	n.Kill()
	redistest.Eventually(t, "not ready", func() bool {
		call(t, "POST", s.api+"/v1/take", `{"attributes":{"user":"42"}}`)
		return ready() == 503
	})
	n.Restart()
	redistest.Eventually(t, "ready again, without a request", func() bool { return ready() == 200 })
}

// A service that starts without its Redis has logged it before it listens, is not
// ready if it needs the store, and notices without any call when Redis comes, goes
// and comes back.
func TestIdleServiceWatchesItsStore(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Kill()
	change := onStore(t, n, 1)
	s := start(t, func(c *config.Config) {
		change(c)
		c.StoreTimeout, c.ReadyNeedsStore = 0, true // the default
	})
	s.logs.await(t, 1, "reason=refused")
	ready := func() int { return call(t, "GET", s.admin+"/readyz", "").status }
	if got := ready(); got != 503 {
		t.Errorf("without its store: got %d, want 503", got)
	}
	n.Restart()
	redistest.Eventually(t, "ready", func() bool { return ready() == 200 })
	n.Stop()
	redistest.Eventually(t, "not ready", func() bool { return ready() == 503 })
	n.Continue()
	redistest.Eventually(t, "ready again", func() bool { return ready() == 200 })
	s.logs.await(t, 2, "store answers again")
	// On a busy machine Redis may be late a third time. Then the log has a third line.
	interruptions := fmt.Sprintf("weir_store_circuit_opens_total{node=%q}", n.Addr())
	redistest.Eventually(t, "an opening of the circuit breaker in the metrics for each one in the log", func() bool {
		logged := s.logs.count("store unavailable, rules follow their on_outage")
		return logged >= 2 && strings.Contains(call(t, "GET", s.admin+"/metrics", "").text, fmt.Sprintf("\n%s %d\n", interruptions, logged))
	})
}

// A full table denies new keys until the first of its keys expires, and the log
// has one line for all of them.
func TestFullTable(t *testing.T) {
	t.Parallel()
	rules := rulesFile(t, "rules:\n  - {name: posts, per: [user], limit: 5, window: 1h, max_keys: 2}\n")
	s := start(t, func(c *config.Config) { c.Rules = rules })
	for _, user := range []string{"a", "b"} {
		if ok, _ := s.post(t, user); !ok {
			t.Errorf("%s: got denied, want room", user)
		}
	}
	for _, user := range []string{"c", "d", "e"} {
		a := call(t, "POST", s.api+"/v1/take", `{"attributes":{"action":"post","user":"`+user+`"}}`)
		wait, _ := a.json["retry_after"].(float64)
		if a.json["allowed"] != false || a.json["degraded_reason"] != "full" || wait < 3500 || wait > 3600 {
			t.Errorf("%s: got %s, want denied for the hour until a key expires", user, a.text)
		}
	}
	if ok, _ := s.post(t, "a"); !ok {
		t.Error("got a known key denied")
	}
	s.logs.await(t, 1, `msg="no room for new keys, rules follow their on_outage" reason=full`)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if n := strings.Count(s.logs.text.String(), "no room for new keys"); n != 2 { // the end of the service ends the episode
		t.Errorf("got %d lines about room, want one at the start and one at the end:\n%s", n, s.logs.text.String())
	}
}

// If the last counters cannot be written, the service ends with an error.
func TestLastCountersAreLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, func(c *config.Config) { c.Data, c.SyncInterval = dir, time.Hour })
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := call(t, "POST", s.api+"/v1/take", `{"attributes": {"user": "42"}}`); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "the last counters could not be written") {
		t.Errorf("got %v, want the error", err)
	}
}
