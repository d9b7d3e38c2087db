package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/internal/pgtest"
)

// TestPostgresScripts runs scripts with a PostgreSQL server, whose URL is $STORE.
func TestPostgresScripts(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	n.Must("CREATE ROLE poor LOGIN")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/postgres",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values[running{}] = new(func())
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("STORE", n.URL("timeout=10s"))
			e.Setenv("POOR", strings.Replace(n.URL("timeout=10s", "prefix=poor"), pgtest.User+"@", "poor@", 1))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"serve": serve, "shutdown": shutdown, "status": status},
	})
}

// The commands of docs/guides/postgres.md start a service that counts in PostgreSQL.
func TestPostgresGuide(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	page := readFile(t, "../../docs/guides/postgres.md")
	password := filepath.Join(t.TempDir(), "password")
	writeFile(t, password, "secret\n")
	there := strings.NewReplacer("db:5432", n.Addr(), "db1,db2", n.Addr()+",127.0.0.1:1", "/app?", "/postgres?timeout=10s&", "/app'", "/postgres?timeout=10s&sslmode=disable'",
		"verify-full", "disable", "/etc/weir/password", password)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("got %d blocks of commands, want 2", len(blocks))
	}
	flags := "--nodes 3"
	for i, m := range blocks {
		export, command, _ := strings.Cut(strings.TrimSpace(there.Replace(m[1])), "\n")
		if !strings.HasPrefix(export, "export WEIR_STORE='postgres://weir@127.0.0.1:") || command != "" && command != "weir serve --rules rules.yaml "+flags {
			t.Fatalf("got %s\n%s, want a store and a service", export, command)
		}
		p := startProcess(t, export+"; ", postgresRules, flags)
		user := fmt.Sprint("user", i)
		if a, text := p.post(t, "/v1/take", `{"attributes":{"action":"post","user":"`+user+`"}}`); !a.Allowed || a.Degraded {
			t.Errorf("got %s, want it allowed by the store", text)
		}
		if got := n.Must("SELECT count(*) FROM weir_counters WHERE name = 'posts:" + user + "'"); got != "1" {
			t.Errorf("got %s rows of %s, want 1", got, user)
		}
	}
}

// post makes a call, and returns the answer and its text.
func (p *process) post(t *testing.T, path, body string) (answer struct {
	Allowed, Degraded bool
	Receipt           string
}, text string) {
	t.Helper()
	text = p.call(t, http.MethodPost, path, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("POST %s: %v: %s\n%s", path, err, text, p.logs.String())
	}
	return answer, text
}

const postgresRules = `rules:
  - {name: posts, when: {action: post}, per: [user], limit: 1000, window: 1h}
  - {name: tokens, when: {action: ask}, per: [team], limit: 100, window: 1h, hold: 1h}
  - {name: logins, when: {action: login-failed}, per: [account], limit: 2, window: 1h, ban: {for: 1h}}
`

// Instances on one PostgreSQL share counts, holds and bans, also when one of them is killed. While the
// server is down each admits its share; afterwards it reports that.
func TestServicesOnPostgres(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	reaches := func(p *process) {
		t.Helper()
		pgtest.Eventually(t, "the service reaches its store", func() bool {
			a, _ := p.post(t, "/v1/check", `{"attributes":{"action":"post","user":"nobody"}}`)
			return a.Allowed && !a.Degraded
		})
	}
	serve := func() *process {
		p := startProcess(t, "", postgresRules, "--store", "'"+n.URL("durability=sync")+"'", "--store-timeout", "10s", "--nodes", "auto")
		reaches(p)
		return p
	}
	one, two := serve(), serve()
	take := func(p *process, action, who string, allowed, degraded bool) string {
		t.Helper()
		key := map[string]string{"post": "user", "ask": "team", "login-failed": "account"}[action]
		a, text := p.post(t, "/v1/take", `{"attributes":{"action":"`+action+`","`+key+`":"`+who+`"}}`)
		if a.Allowed != allowed || a.Degraded != degraded {
			t.Errorf("%s: got %s, want allowed %v and degraded %v", action, text, allowed, degraded)
		}
		return a.Receipt
	}
	settle := func(p *process, receipt string) {
		t.Helper()
		if _, text := p.post(t, "/v1/settle", `{"receipt":"`+receipt+`","attributes":{"action":"ask","team":"red"}}`); !strings.Contains(text, `"held":true`) {
			t.Errorf("got %s, want the hold", text)
		}
	}
	used := func(p *process, query string, want int64) {
		t.Helper()
		var usage struct{ Used int64 }
		get(t, p.api+"/v1/usage?"+query, &usage)
		if usage.Used != want {
			t.Errorf("%s: got %d used, want %d", query, usage.Used, want)
		}
	}
	for range 3 {
		take(one, "post", "ann", true, false)
		take(two, "post", "ann", true, false)
	}
	used(one, "rule=posts&user=ann", 6)
	settle(two, take(one, "ask", "red", true, false))
	take(one, "login-failed", "ann", true, false)
	take(two, "login-failed", "ann", true, false)
	take(one, "login-failed", "ann", false, false)
	if _, text := two.post(t, "/v1/check", `{"attributes":{"action":"login-failed","account":"ann"}}`); !strings.Contains(text, `"banned_until":`) {
		t.Errorf("got %s, want the ban of the other instance", text)
	}
	pgtest.Eventually(t, "both count two instances", func() bool {
		return one.metric(t, "weir_store_instances") == 2 && two.metric(t, "weir_store_instances") == 2
	})

	receipt := take(one, "ask", "red", true, false)
	one.kill()
	take(two, "post", "ann", true, false)
	three := serve()
	settle(three, receipt)
	used(three, "rule=posts&user=ann", 7)

	n.Kill()
	pgtest.Eventually(t, "the store is unavailable", func() bool {
		a, _ := two.post(t, "/v1/check", `{"attributes":{"action":"post","user":"nobody"}}`)
		return a.Degraded
	})
	take(two, "post", "bob", true, true)
	take(two, "post", "bob", true, true)
	take(two, "login-failed", "bob", true, true)
	n.Restart()
	pgtest.Eventually(t, "the reports are recorded", func() bool {
		return two.metric(t, `weir_store_report_hits_total{result="recorded"}`) == 3 && two.metric(t, "weir_store_report_pending") == 0
	})
	reaches(three)
	used(three, "rule=posts&user=bob", 2)
	used(three, "rule=posts&user=ann", 7)
	take(three, "login-failed", "ann", false, false)
	if got := two.metric(t, `weir_store_circuit_opens_total{node="`+n.Addr()+`"}`); got != 1 {
		t.Errorf("got %v interruptions, want 1", got)
	}
	if logs := two.logs.String(); !strings.Contains(logs, "store unavailable") || !strings.Contains(logs, "store answers again") {
		t.Errorf("got logs without the outage:\n%s", logs)
	}
}
