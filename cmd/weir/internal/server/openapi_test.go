package server_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/apitest"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// TestOpenAPIAdmin compares the calls of the admin address, and those about health,
// with the operations of the description. Those below /v1/ are the subject of
// package httpapi.
func TestOpenAPIAdmin(t *testing.T) {
	t.Parallel()
	want := server.AdminCalls()
	want["GET /healthz"], want["GET /readyz"] = "-", "-" // no authentication at all
	const profile = "/debug/pprof/{profile}"
	profiles := 0
	for call, need := range apitest.Load(t).Operations() {
		switch _, path, _ := strings.Cut(call, " "); {
		case strings.HasPrefix(path, "/v1/"):
		case path == profile:
			profiles++
		case want[call] != need:
			t.Errorf("%s: the description has scopes %q, want %q", call, need, want[call])
		}
		delete(want, call)
	}
	for call := range want {
		if !strings.HasPrefix(call, "GET /debug/pprof/") || profiles != 1 {
			t.Errorf("%s is not in the description", call)
		}
		if name := strings.TrimPrefix(call, "GET /debug/pprof/"); !strings.Contains(strings.Join(apitest.Load(t).Values(profile, "profile"), " "), name) {
			t.Errorf("the profile %s is not in the description", name)
		}
	}
}

// exchange makes a call and checks it against the description.
func exchange(t *testing.T, d *apitest.Description, method, base, url string, header http.Header) *apitest.Exchange {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	x := &apitest.Exchange{Method: method, URL: url, Header: req.Header, Status: resp.StatusCode, Got: resp.Header, Answer: string(body)}
	d.Check(t, x)
	return x
}

// TestOpenAPIOperate gets each status of the calls about health, metrics, reload and
// profiles.
func TestOpenAPIOperate(t *testing.T) {
	t.Parallel()
	d := apitest.Load(t)
	get := func(want int, method, base, url string, header http.Header) {
		t.Helper()
		if x := exchange(t, d, method, base, url, header); x.Status != want {
			t.Errorf("got %d, want %d\n%s", x.Status, want, x)
		}
	}
	file := rulesFile(t, d.Rules())
	open := start(t, withRules(file, false))
	for _, base := range []string{open.api, open.admin} {
		get(200, "GET", base, "/healthz", nil)
		get(200, "GET", base, "/readyz", nil)
		get(200, "HEAD", base, "/healthz", nil)
	}
	get(200, "GET", open.api, "/v1/openapi.yaml", nil)
	admin := map[string]string{"/metrics": "GET", "/-/reload": "POST", "/-/rotate-secret": "POST", "/debug/pprof/": "GET"}
	for _, profile := range []string{"allocs", "block", "cmdline", "goroutine", "heap", "mutex", "symbol", "threadcreate"} {
		admin["/debug/pprof/"+profile] = "GET"
	}
	for url, method := range admin {
		get(200, method, open.admin, url, nil)
		get(403, method, open.admin, url, http.Header{"Sec-Fetch-Site": {"cross-site"}})
		get(405, "DELETE", open.admin, url, nil)
	}
	get(404, "GET", open.admin, "/debug/pprof/nothing", nil)
	get(404, "GET", open.admin, "/nothing", nil)

	write(t, file, "rules: [{name: 1}]")
	get(422, "POST", open.admin, "/-/reload", nil)
	get(409, "POST", start(t, nil).admin, "/-/reload", nil)

	dir := t.TempDir()
	for _, name := range []string{"default", "shop"} {
		write(t, filepath.Join(dir, name+".yaml"), posts(5))
	}
	several := start(t, func(c *config.Config) { c.Rules, c.Watch = dir, false })
	get(200, "POST", several.admin, "/-/reload", nil)
	get(200, "GET", several.api, "/ns/shop/v1/rules", nil)

	away := start(t, func(c *config.Config) {
		c.Store, c.ReadyNeedsStore = "redis://127.0.0.1:1", true
	})
	get(503, "GET", away.api, "/readyz", nil)
	get(503, "POST", away.admin, "/-/rotate-secret", nil)

	locked := start(t, func(c *config.Config) { c.Access.Token = strings.Repeat("secret", 8) })
	for url, method := range admin {
		get(401, method, locked.admin, url, nil)
	}
	for range access.WrongTokens {
		exchange(t, d, "GET", locked.admin, "/metrics", http.Header{"Authorization": {"Bearer wrong"}})
	}
	for url, method := range admin {
		get(429, method, locked.admin, url, http.Header{"Authorization": {"Bearer wrong"}})
	}
	for _, prefix := range []string{"/healthz", "/readyz", "/metrics", "/-/", "/debug/"} {
		if unseen := d.Unseen(prefix); len(unseen) > 0 {
			t.Errorf("no call had these:\n%s", strings.Join(unseen, "\n"))
		}
	}
}
