package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

// customers is the story of docs/guides/customers.md: two instances on one store, the commands of the page, and what
// was admitted for each customer, counted independently.
type customers struct {
	t        *testing.T
	dir      string
	commands []string
	one, two *process
	admitted map[string]int64
}

// A customer gets a raise, its retried takes count once although an instance is killed, the webhook arrives, a ban is
// lifted, and the export is the sum of what was admitted, on Redis and on PostgreSQL.
func TestCustomersGuide(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "curl")
	for name, open := range map[string]func(*testing.T) string{
		"redis":    func(t *testing.T) string { return "redis://" + redistest.Server(t).Addr() + "?timeout=30s" },
		"postgres": func(t *testing.T) string { return pgtest.Server(t).URL("timeout=30s") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &customers{t: t, dir: t.TempDir(), admitted: map[string]int64{}}
			webhook := c.serve(open(t))
			c.raise()
			webhook.set(true) // the receiver is down
			if a := c.command(1); !strings.Contains(a, `"allowed":true`) {
				t.Fatalf("got %s, want 400 calls admitted", a)
			}
			c.admitted["acme"] += 400
			redistest.Eventually(t, "the event waits for the webhook", func() bool { return c.one.waiting("crm") == 1 })
			c.retry()
			webhook.set(false)
			c.unban()
			c.lower()
			c.export()
			pgtest.Eventually(t, "the event arrives", func() bool { return webhook.distinct() > 0 })
			webhook.mu.Lock()
			defer webhook.mu.Unlock()
			if len(webhook.ids) != 1 || webhook.bad > 0 || !slices.Equal(webhook.order["acme"], []string{"weir.near"}) {
				t.Errorf("got ids %v, %d bad signatures and events %v, want one near for acme", webhook.ids, webhook.bad, webhook.order)
			}
		})
	}
}

// serve starts two instances as the page does, and a receiver for its webhook.
func (c *customers) serve(store string) *collector {
	c.t.Helper()
	page, err := os.ReadFile("../../docs/guides/customers.md")
	if err != nil {
		c.t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	if len(blocks["yaml"]) != 2 || len(blocks["sh"]) != 5 {
		c.t.Fatalf("got %d files and %d blocks of commands, want 2 and 5", len(blocks["yaml"]), len(blocks["sh"]))
	}
	webhook, _ := newCollector(c.t)
	for file, text := range map[string]string{
		"webhooks.yaml": strings.Replace(blocks["yaml"][1], "https://crm.example.com", webhook.URL, 1),
		"crm.secret":    webhookSecret + "\n",
		".curlrc":       "fail\nsilent\nshow-error\n",
	} {
		if err := os.WriteFile(filepath.Join(c.dir, file), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	var started []*process
	for _, m := range regexp.MustCompile(`weir serve --rules rules.yaml --webhooks webhooks.yaml (.*) &`).FindAllStringSubmatch(blocks["sh"][0], -1) {
		p := startProcess(c.t, "export WEIR_STORE='"+store+"';", blocks["yaml"][0], "--webhooks", filepath.Join(c.dir, "webhooks.yaml"),
			"--store-timeout", "30s", regexp.MustCompile(`:\d+`).ReplaceAllString(m[1], ":0"))
		p.ready(c.t)
		started = append(started, p)
	}
	if len(started) != 2 {
		c.t.Fatalf("the page starts %d instances, want 2, in\n%s", len(started), blocks["sh"][0])
	}
	c.one, c.two = started[0], started[1]
	there := strings.NewReplacer("localhost:8080", c.one.api, "localhost:8090", c.two.api,
		"2026-12-01T00:00:00Z", time.Now().AddDate(0, 0, 7).UTC().Format(time.RFC3339))
	for _, text := range blocks["sh"][1:] {
		c.commands = append(c.commands, there.Replace(text))
	}
	return webhook
}

// command runs the commands of a block of the page, and returns what they print.
func (c *customers) command(n int) string {
	c.t.Helper()
	cmd := exec.Command("bash", "-euc", c.commands[n])
	cmd.Env = append(os.Environ(), "CURL_HOME="+c.dir)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s%v\n%s%s", c.commands[n], err, out, problem.String())
	}
	return string(out)
}

// ready waits until p answers calls: a data directory is loaded, and overrides are in force.
func (p *process) ready(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the service is ready", func() bool { return p.get("/readyz") != "" })
}

// get returns the answer to a GET with status 200, or "".
func (p *process) get(path string) string {
	resp, err := http.Get(p.api + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// taken is what the story needs of an answer.
type taken struct{ Allowed, Degraded, Replayed bool }

// send makes a call with a body, and returns an error if no answer came.
func (c *customers) send(p *process, method, path, body string) (a taken, err error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, p.api+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil || resp.StatusCode != http.StatusOK || a.Degraded {
		c.t.Errorf("%s: got %d %s, want an answer of the store", body, resp.StatusCode, text)
	}
	return a, nil
}

// take takes hits of a customer, counts what is admitted, and reports whether it was.
func (c *customers) take(p *process, customer string, hits int64) bool {
	c.t.Helper()
	a, err := c.send(p, http.MethodPost, "/v1/take", fmt.Sprintf(`{"attributes":{"action":"call","customer":%q},"hits":%d}`, customer, hits))
	if err != nil {
		c.t.Fatal(err)
	}
	if a.Allowed {
		c.admitted[customer] += hits
	}
	return a.Allowed
}

// quota returns a customer's calls a minute at an instance.
func (p *process) quota(customer string) (n int64) {
	var u struct{ Quota int64 }
	_ = json.Unmarshal([]byte(p.get("/v1/usage?rule=calls-per-minute&customer="+customer)), &u) // 0 if it is not JSON
	return u.Quota
}

// raise gives acme the override of the page, and waits until it is in force.
func (c *customers) raise() {
	c.t.Helper()
	for _, customer := range []string{"acme", "globex"} {
		if c.take(c.one, customer, 150) || !c.take(c.two, customer, 5) {
			c.t.Errorf("%s does not have 100 a minute", customer)
		}
	}
	c.command(0)
	put := time.Now()
	for _, p := range []*process{c.one, c.two} {
		redistest.Eventually(c.t, "the raise is in force", func() bool { return p.quota("acme") == 500 })
	}
	c.t.Logf("in force at both instances after %v", time.Since(put))
	redistest.Eventually(c.t, "the store has the audit trail", func() bool {
		return strings.Contains(c.two.get("/v1/audit"), "override-set")
	})
	if c.take(c.two, "globex", 150) {
		c.t.Error("another customer has a raise, too")
	}
}

// retry takes calls with idempotency keys at the first instance, which is killed meanwhile, and takes again at the
// second what was not answered, or what was as if its answer had been lost.
func (c *customers) retry() {
	c.t.Helper()
	const takes, lost = 60, 3 // one of so many answers is lost
	body := func(n int) string {
		return fmt.Sprintf(`{"attributes":{"action":"call","customer":"acme"},"hits":%d,"idempotency_key":"call-%d"}`, 1+n%2, n)
	}
	var group sync.WaitGroup
	numbers, answered := make(chan int), make([]bool, takes)
	for range 8 {
		group.Go(func() {
			for n := range numbers {
				a, err := c.send(c.one, http.MethodPost, "/v1/take", body(n))
				if answered[n] = err == nil; answered[n] && !a.Allowed {
					c.t.Errorf("take %d is denied", n)
				}
			}
		})
	}
	for n := range takes {
		numbers <- n
		if n == takes/2 {
			c.one.kill()
		}
	}
	close(numbers)
	group.Wait()
	unanswered := 0
	for n := range takes {
		c.admitted["acme"] += int64(1 + n%2)
		if answered[n] && n%lost != 0 {
			continue
		}
		a, err := c.send(c.two, http.MethodPost, "/v1/take", body(n))
		if err != nil || !a.Allowed || answered[n] && !a.Replayed {
			c.t.Errorf("take %d, answered before: %v: got %+v and error %v, want it admitted", n, answered[n], a, err)
		}
		if !answered[n] {
			unanswered++
		}
	}
	if unanswered == 0 {
		c.t.Error("all takes were answered")
	}
}

// unban brings a ban on acme, lifts it as the page does, and reads the audit trail.
func (c *customers) unban() {
	c.t.Helper()
	login := func() bool {
		c.t.Helper()
		a, err := c.send(c.two, http.MethodPost, "/v1/take", `{"attributes":{"action":"login","customer":"acme"}}`)
		if err != nil {
			c.t.Fatal(err)
		}
		return a.Allowed
	}
	for n := range 5 {
		if allowed := login(); allowed != (n < 3) {
			c.t.Errorf("login %d: got allowed %v", n+1, allowed)
		}
	}
	var audit struct {
		Entries []struct {
			Action, Address, Rule string
			Attributes            map[string]string
		}
	}
	lifted, text, _ := strings.Cut(c.command(2), "\n")
	if lifted != `{"lifted":true}` {
		c.t.Errorf("got %s, want that a ban was lifted", lifted)
	}
	if err := json.Unmarshal([]byte(text), &audit); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	var got []string
	for _, e := range audit.Entries {
		if e.Rule != "" {
			got = append(got, fmt.Sprintf("%s %s %s %s", e.Action, e.Rule, e.Attributes["customer"], e.Address))
		}
	}
	want := []string{"ban-lifted logins acme 127.0.0.1", "override-set calls-per-minute acme 127.0.0.1"}
	if !slices.Equal(got, want) {
		c.t.Errorf("got %q, want %q in\n%s", got, want, text)
	}
	if !login() {
		c.t.Error("the login after the ban is denied")
	}
}

// lower replaces the raise with one that ends soon, and waits for its end.
func (c *customers) lower() {
	c.t.Helper()
	body := fmt.Sprintf(`{"rule":"calls-per-minute","attributes":{"customer":"acme"},"limit":500,"until":%q}`,
		time.Now().Add(10*time.Second).UTC().Format(time.RFC3339Nano))
	if _, err := c.send(c.two, http.MethodPut, "/v1/overrides", body); err != nil {
		c.t.Fatal(err)
	}
	redistest.Eventually(c.t, "the raise ends", func() bool { return c.two.quota("acme") == 100 })
	if c.take(c.two, "acme", 150) {
		c.t.Error("the raise has ended, and 150 calls are admitted")
	}
}

// export compares the month's export with what was admitted. If a month ended meanwhile, the calls before count, too.
func (c *customers) export() {
	c.t.Helper()
	got := map[string]int64{}
	for _, text := range []string{c.command(3), c.two.get("/v1/export?rule=calls-per-month&period=last")} {
		complete := false
		for line := range strings.Lines(text) {
			var one struct {
				Attributes map[string]string
				Used       int64
				Complete   bool
			}
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				c.t.Fatalf("%s: %v", line, err)
			}
			if complete = one.Complete; !complete {
				got[one.Attributes["customer"]] += one.Used
			}
		}
		if !complete {
			c.t.Errorf("the export is not complete:\n%s", text)
		}
	}
	if !maps.Equal(got, c.admitted) {
		c.t.Errorf("got %v, want %v", got, c.admitted)
	}
}
