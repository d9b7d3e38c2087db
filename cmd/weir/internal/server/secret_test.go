package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

const holding = "rules: [{name: tokens, per: [team], limit: 100, window: 1h, hold: %}]"

// The call rotates the secret wherever the service counts. Receipts of before are valid
// for a day, or for the longest hold, until the secret is rotated once more.
func TestRotateSecret(t *testing.T) {
	t.Parallel()
	servers := redistest.Server(t)
	for name, c := range map[string]struct {
		hold   string
		keep   time.Duration
		change func(*config.Config)
	}{
		"memory":    {"1h", 24 * time.Hour, nil},
		"directory": {"30h", 30 * time.Hour, func(c *config.Config) { c.Data = t.TempDir() }},
		"postgres":  {"30h", 30 * time.Hour, func(c *config.Config) { c.Store = pgtest.Server(t).URL("timeout=10s") }},
		"redis":     {"30h", 30 * time.Hour, func(c *config.Config) { c.Store = "redis://" + servers.Addr() + "?timeout=10s" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := rulesFile(t, strings.ReplaceAll(holding, "%", c.hold))
			s := start(t, func(cfg *config.Config) {
				if withRules(file, false)(cfg); c.change != nil {
					c.change(cfg)
				}
			})
			redistest.Eventually(t, "the service is ready", func() bool { return call(t, "GET", s.api+"/readyz", "").status == 200 })
			take := func() string {
				a := call(t, "POST", s.api+"/v1/take", `{"attributes":{"team":"red"}}`)
				receipt, _ := a.json["receipt"].(string)
				if receipt == "" {
					t.Fatalf("got %s, want a receipt", a.text)
				}
				return receipt
			}
			settle := func(receipt string, held string) {
				t.Helper()
				a := call(t, "POST", s.api+"/v1/settle", `{"receipt":"`+receipt+`","attributes":{"team":"red"}}`)
				if a.status != 200 || !strings.Contains(a.text, `"held":`+held) {
					t.Errorf("got %d %s, want held %s", a.status, a.text, held)
				}
			}
			rotate := func() {
				t.Helper()
				a := call(t, "POST", s.admin+"/-/rotate-secret", "")
				text, _ := a.json["old_valid_until"].(string)
				until, err := time.Parse(time.RFC3339, text)
				if left := time.Until(until); a.status != 200 || err != nil || left > c.keep || left < c.keep-time.Minute {
					t.Errorf("got %d %s, want a time in %v", a.status, a.text, c.keep)
				}
			}
			first, second := take(), take()
			write(t, file, strings.ReplaceAll(holding, "%", "1m"))
			if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 200 {
				t.Fatal(a.text)
			}
			rotate()
			settle(first, "true")
			third := take()
			rotate()
			settle(second, "false")
			settle(third, "true")
		})
	}
}
