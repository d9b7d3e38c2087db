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

// A service with a data directory is killed after its answers were sent: takes that are sent again count once, whether
// they were admitted or denied, and overrides, the audit trail, what webhooks still have to get, and the period that has
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
		if a := two.take(t, customer, again.hits, again.key); a.Allowed != again.allowed || !a.Replayed {
			t.Errorf("%s: got %+v, want allowed %v, replayed", again.key, a, again.allowed)
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
