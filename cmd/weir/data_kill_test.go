package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

const killedRules = `rules:
  - name: calls
    per: [customer]
    limit: 10
    window: month
    near: 80%
    export: true
`

// useLastMonth makes a directory in which a customer has used hits in the month before this one.
func useLastMonth(t *testing.T, customer string, hits int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	now := time.Now().UTC()
	at := window.At(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour))
	s, err := datadir.Open(dir, datadir.WithClock(func() window.Instant { return at }))
	if err != nil {
		t.Fatal(err)
	}
	file, err := rulefile.Parse("rules.yaml", []byte(killedRules), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	e, err := weir.NewEngine(file.Set, weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Record(t.Context(), weir.Request{Attributes: weir.Attributes("customer", customer), Hits: hits}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// call makes a call that must succeed, and returns its answer.
func (p *process) call(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s %s: got %s, error %v\n%s", method, path, body, resp.Status, err, text)
	}
	return string(text)
}

// take takes hits of a customer with an idempotency key.
func (p *process) take(t *testing.T, customer string, hits int, key string) (a taken) {
	t.Helper()
	body := fmt.Sprintf(`{"attributes":{"customer":%q},"hits":%d,"idempotency_key":%q}`, customer, hits, key)
	if err := json.Unmarshal([]byte(p.call(t, http.MethodPost, "/v1/take", body)), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// A service with a data directory is killed after its answers were sent. Takes that are sent again count once, and those
// that were denied are decided anew. Overrides, the audit trail, what webhooks still have to get and the period that has
// closed are there.
func TestKilledRecords(t *testing.T) {
	t.Parallel()
	dir := useLastMonth(t, "acme", 7)
	hooks, file := newCollector(t)
	start := func() *process {
		p := startProcess(t, "", killedRules, "--data", dir, "--sync", "always", "--webhooks", file)
		p.ready(t)
		return p
	}
	one := start()
	one.call(t, http.MethodPut, "/v1/overrides", `{"rule":"calls","attributes":{"customer":"acme"},"limit":100}`)
	if one.take(t, "globex", 9, "near"); !one.take(t, "acme", 50, "admitted").Allowed {
		t.Error("the override is not in force")
	}
	redistest.Eventually(t, "the first event arrives", func() bool { return hooks.distinct() == 1 && one.waiting("test") == 0 })
	hooks.set(true)
	if one.take(t, "globex", 9, "denied").Allowed {
		t.Error("globex is not denied")
	}
	redistest.Eventually(t, "the second event waits", func() bool { return one.waiting("test") == 1 })
	one.take(t, "acme", 1, "last") // its answer comes after all before it was synced
	one.kill()

	two := start()
	for customer, again := range map[string]struct {
		key     string
		hits    int
		allowed bool
	}{"globex": {"denied", 9, false}, "acme": {"admitted", 50, true}} {
		if a := two.take(t, customer, again.hits, again.key); a.Allowed != again.allowed || a.Replayed != again.allowed {
			t.Errorf("%s: got %+v, want allowed and replayed %v", again.key, a, again.allowed)
		}
	}
	for path, want := range map[string]string{
		"/v1/usage?rule=calls&customer=acme":   `"used":51`,
		"/v1/usage?rule=calls&customer=globex": `"used":9`,
		"/v1/overrides":                        `"limit":100`,
		"/v1/audit":                            `override-set`,
		"/v1/export?rule=calls&period=last":    `{"attributes":{"customer":"acme"},"used":7`,
		"/v1/export?rule=calls":                `{"attributes":{"customer":"acme"},"used":51`,
	} {
		if got := two.call(t, http.MethodGet, path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("events %v, %d wait\n%s\n%s", hooks.ids, two.waiting("test"), one.logs.String(), two.logs.String())
		}
	})
	hooks.set(false)
	redistest.Eventually(t, "the second event arrives", func() bool { return hooks.distinct() == 2 && two.waiting("test") == 0 })
	hooks.mu.Lock()
	defer hooks.mu.Unlock()
	for id, n := range hooks.ids {
		if n != 1 {
			t.Errorf("event %s came %d times", id, n)
		}
	}
	if got := strings.Join(hooks.order["globex"], " "); got != "weir.near weir.denied" || hooks.bad > 0 {
		t.Errorf("got %s and %d bad calls", got, hooks.bad)
	}
}

// An instance that admits by itself while Redis is down, and is killed: the next process
// continues its local counts, and reports what both have admitted when Redis is back. A
// third process reports nothing again.
func TestReportsSurviveAKill(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	args := []string{"--store", "redis://" + redis.Addr(), "--nodes", "1", "--data", t.TempDir(), "--sync-interval", "10ms"}
	start := func() *loaded {
		l := &loaded{process: startProcess(t, "", dataRules, args...)}
		l.ready(t)
		return l
	}
	take := func(l *loaded, hits int) {
		for range hits {
			if !l.take(1) {
				t.Fatal("a take was not answered")
			}
		}
	}
	kill := func(l *loaded) {
		for last := time.Now(); ; {
			if at, ok := l.flushed(); ok && at.After(last) {
				break
			}
		}
		l.kill()
	}
	l := start()
	redis.Kill()
	take(l, 5)
	if n := l.metric(t, "weir_store_report_pending"); n != 1 {
		t.Errorf("got %v keys that wait for a report, want 1", n)
	}
	kill(l)

	l = start()
	l.waitFor(t, "weir_store_report_pending", func(n float64) bool { return n == 1 })
	take(l, 2)
	kill(l)

	redis.Restart() // without its data
	l = start()
	const recorded = `weir_store_report_hits_total{result="recorded"}`
	l.waitFor(t, recorded, func(n float64) bool { return n == 7 })
	if n := used(t, l.api)[1]; n != 7 {
		t.Errorf("got %d used in Redis, want 7", n)
	}
	kill(l)

	l = start()
	again := float64(0)
	if l.degraded(t) { // on a busy machine Redis may answer too late
		again = 1
	}
	redistest.Eventually(t, "8 are used in Redis after another kill", func() bool { return used(t, l.api)[1] == 8 })
	if n := l.metric(t, recorded); n != again {
		t.Errorf("after another kill: got %v hits recorded, want %v", n, again)
	}
}

// degraded takes a hit of user u1, and reports whether the answer is degraded: memory
// has counted the hit, instead of Redis.
func (p *process) degraded(t *testing.T) bool {
	t.Helper()
	d, _ := p.post(t, "/v1/take", `{"attributes": {"user": "u1"}}`)
	if !d.Allowed {
		t.Fatalf("got %+v, want allowed", d)
	}
	return d.Degraded
}
