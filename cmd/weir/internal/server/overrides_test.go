package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

const callsRules = "rules:\n  - {name: calls, per: [customer], limit: 2, window: 1h}\n"

// quota returns the quota of a customer, and whether it is that of an override.
func (s *service) quota(t *testing.T, customer string) (quota int64, override bool) {
	t.Helper()
	var u struct {
		Quota    int64
		Override bool
	}
	if err := json.Unmarshal([]byte(call(t, http.MethodGet, s.api+"/v1/usage?rule=calls&customer="+customer, "").text), &u); err != nil {
		t.Fatal(err)
	}
	return u.Quota, u.Override
}

// A reload that leaves overrides without effect is logged.
func TestIdleOverridesAreLogged(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n  - {name: calls, per: [{ip: {v6: %d}}], limit: 2, window: 1h}\n"
	path := rulesFile(t, fmt.Sprintf(rules, 64))
	s := start(t, withRules(path, true))
	if a := call(t, http.MethodPut, s.api+"/v1/overrides", `{"rule": "calls", "attributes": {"ip": "2001:db8::5"}, "limit": 0}`); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	write(t, path, fmt.Sprintf(rules, 56))
	s.logs.await(t, 1, "overrides have no effect under these rules: weir override list shows them as idle")
}

// Overrides are in force on all instances, and outlive them, in each store.
func TestOverrides(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) func(*config.Config){
		"redis": func(t *testing.T) func(*config.Config) {
			n := redistest.Server(t)
			return func(c *config.Config) { c.Store, c.Nodes = "redis://"+n.Addr()+"?timeout=30s", 2 }
		},
		"postgres": func(t *testing.T) func(*config.Config) {
			n := pgtest.Server(t)
			return func(c *config.Config) { c.Store, c.Nodes = n.URL("timeout=30s"), 2 }
		},
		"data": func(t *testing.T) func(*config.Config) {
			dir := filepath.Join(t.TempDir(), "data")
			return func(c *config.Config) { c.Data = dir }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, rules := open(t), rulesFile(t, callsRules)
			begin := func() *service {
				return start(t, func(c *config.Config) { place(c); c.Rules = rules })
			}
			one := begin()
			two := one
			if name != "data" {
				two = begin()
			}
			for range 3 {
				call(t, http.MethodPost, one.api+"/v1/take", `{"attributes":{"customer":"acme"}}`)
			}
			set := `{"rule":"calls","attributes":{"customer":"acme"},"limit":5,"note":"ticket"}`
			if got := call(t, http.MethodPut, one.api+"/v1/overrides", set); got.status != 200 || !strings.Contains(got.text, `"limit":5,"note":"ticket","set":"`) {
				t.Fatalf("got %d %s", got.status, got.text)
			}
			redistest.Eventually(t, "both have it", func() bool {
				q, override := two.quota(t, "acme")
				return q == 5 && override
			})
			allowed := 0
			for range 6 {
				if got := call(t, http.MethodPost, two.api+"/v1/take", `{"attributes":{"customer":"acme"}}`); strings.Contains(got.text, `"allowed":true`) {
					allowed++
				}
			}
			if allowed != 3 {
				t.Errorf("got %d more admitted, want 3, because 2 count", allowed)
			}
			if got := call(t, http.MethodGet, two.admin+"/v1/overrides", ""); strings.Count(got.text, `"rule"`) != 1 {
				t.Errorf("at the admin address: got %d %s", got.status, got.text)
			}
			if got := call(t, http.MethodPost, two.admin+"/v1/take", `{"attributes":{"customer":"acme"}}`); got.status != http.StatusNotFound {
				t.Errorf("a call that is not forwarded: got %d", got.status)
			}
			if got := call(t, http.MethodGet, two.api+"/v1/denials", ""); !strings.Contains(got.text, `"quota":5,"override":true`) {
				t.Errorf("got %s, want that an override denied", got.text)
			}
			if got := call(t, http.MethodGet, two.api+"/v1/top?rule=calls", ""); strings.Count(got.text, `{"key":"acme","hits":3,"override":true}`)+strings.Count(got.text, `{"key":"acme","hits":5,"override":true}`) != 1 {
				t.Errorf("got %s, want the key with an override", got.text)
			}
			if q, override := two.quota(t, "other"); q != 2 || override {
				t.Errorf("got a quota of %d, %v for another customer", q, override)
			}
			for want, body := range map[string]string{
				`400 "field":"rule"`:                strings.Replace(set, "calls", "nope", 1),
				`400 "field":"attributes.user"`:     strings.Replace(set, "customer", "user", 1),
				`400 "field":"limit","place":"1:`:   strings.Replace(set, ":5", ":-5", 1),
				`400 "field":"until","place":"1:`:   strings.Replace(set, `"note"`, `"until":"soon","note"`, 1),
				`400 "field":"burst"`:               strings.Replace(set, `"note"`, `"burst":3,"note"`, 1),
				`400 "field":"limit","place":"1:1"`: `{"rule":"calls","attributes":{"customer":"acme"}}`,
			} {
				got := call(t, http.MethodPut, one.api+"/v1/overrides", body)
				if status, field, _ := strings.Cut(want, " "); status != "400" || got.status != 400 || !strings.Contains(got.text, field) {
					t.Errorf("%s: got %d %s, want %s", body, got.status, got.text, want)
				}
			}

			if err := one.stop(); err != nil {
				t.Error(err)
			}
			one = begin()
			if q, _ := one.quota(t, "acme"); q != 5 {
				t.Errorf("got a quota of %d from a new instance, want the override", q)
			}
			if one.logs.count("overrides cannot be read") > 0 {
				t.Error("got a warning about overrides, which could be read")
			}
			if got := call(t, http.MethodGet, one.api+"/v1/overrides?rule=calls", ""); strings.Count(got.text, `"rule"`) != 1 {
				t.Errorf("got %s, want one override", got.text)
			}
			write(t, rules, strings.Replace(callsRules, "calls", "renamed", 1))
			if got := call(t, http.MethodPost, one.admin+"/-/reload", ""); got.status != 200 {
				t.Errorf("got %d %s", got.status, got.text)
			}
			if got := call(t, http.MethodGet, one.api+"/v1/overrides", ""); !strings.Contains(got.text, `"idle":true`) {
				t.Errorf("got %s, want it idle", got.text)
			}
			for _, want := range []int{http.StatusNoContent, http.StatusNotFound} { // the second time nothing is left
				if got := call(t, http.MethodDelete, one.api+"/v1/overrides?rule=calls&customer=acme", ""); got.status != want {
					t.Errorf("got %d %s, want %d", got.status, got.text, want)
				}
			}
			if got := call(t, http.MethodDelete, one.api+"/v1/usage?rule=renamed&customer=acme", ""); got.status != http.StatusNoContent {
				t.Errorf("got %d %s", got.status, got.text)
			}
			write(t, rules, "rules: 5")
			call(t, http.MethodPost, one.admin+"/-/reload", "")
			redistest.Eventually(t, "the audit trail has all", func() bool {
				got := call(t, http.MethodGet, one.api+"/v1/audit", "").text
				for i, action := range []string{"rules-refused", "forget", "override-removed", "rules-changed", "override-set"} {
					_, rest, ok := strings.Cut(got, `"action":"`+action+`","address":"127.0.0.1"`)
					if !ok {
						t.Logf("%d: %s: %s", i, action, got)
						return false
					}
					got = rest
				}
				return strings.Contains(got, `"after":{"rule":"calls","attributes":{"customer":"acme"},"limit":5`)
			})
		})
	}
}

// Overrides end while the service drains.
func TestOverridesWhileDraining(t *testing.T) {
	t.Parallel()
	for delay := 3 * time.Second; !endsWhileDraining(t, delay); delay *= 3 { // a crowded machine needs longer
		if delay > 20*time.Second {
			t.Fatal("the override has not ended")
		}
	}
}

// endsWhileDraining reports whether an override was seen to end in the time for which a service drains.
func endsWhileDraining(t *testing.T, delay time.Duration) bool {
	t.Helper()
	s := start(t, func(c *config.Config) { c.Rules, c.DrainDelay = rulesFile(t, callsRules), delay })
	until := time.Now().Add(delay / 3).UTC().Format(time.RFC3339Nano)
	if got := call(t, http.MethodPut, s.api+"/v1/overrides", `{"rule":"calls","attributes":{"customer":"acme"},"limit":4,"until":"`+until+`"}`); got.status != 200 {
		return false
	}
	s.cancel()
	s.logs.await(t, 1, "draining")
	ended := false
	redistest.Eventually(t, "the override ends, or the service", func() bool {
		resp, err := http.Get(s.api + "/v1/usage?rule=calls&customer=acme")
		if err != nil {
			return true
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		ended = strings.Contains(string(text), `"quota":2,`)
		return ended
	})
	return ended
}

// In an outage the overrides that are known stay in force; an instance that starts then has none, and says so.
func TestOverridesInOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	begin := func() *service {
		return start(t, func(c *config.Config) {
			c.Store, c.Rules, c.Nodes = "redis://"+n.Addr()+"?timeout=10s", rulesFile(t, callsRules), 1
		})
	}
	one := begin()
	if got := call(t, http.MethodPut, one.api+"/v1/overrides", `{"rule":"calls","attributes":{"customer":"acme"},"limit":4}`); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.text)
	}
	n.Kill()
	if q, _ := one.quota(t, "acme"); q != 4 {
		t.Errorf("got a quota of %d in the outage, want 4", q)
	}
	if got := call(t, http.MethodPut, one.api+"/v1/overrides", `{"rule":"calls","attributes":{"customer":"acme"},"limit":9}`); got.status != 503 {
		t.Errorf("got %d %s, want 503", got.status, got.text)
	}
	two := begin()
	two.logs.await(t, 1, "overrides cannot be read")
	if got := call(t, http.MethodGet, two.api+"/v1/overrides", ""); got.text != `{"overrides":[],"degraded":true}`+"\n" {
		t.Errorf("got %s", got.text)
	}
}
