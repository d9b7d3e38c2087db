package server_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// TestPage: the admin address serves the page, whose stream says what is decided and does not keep the service from
// stopping.
func TestPage(t *testing.T) {
	t.Parallel()
	const token = "page-token-0123456789abcdef"
	s := start(t, func(c *config.Config) { c.Access.Token = token })
	if got := call(t, "GET", s.admin+"/", ""); got.status != http.StatusOK || !strings.Contains(got.text, "<title>weir</title>") {
		t.Errorf("got %d %s, want the page", got.status, got.text)
	}
	request := func(method, url, body string) *http.Request {
		t.Helper()
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	status := func(method, url, body string) int {
		t.Helper()
		got, err := http.DefaultClient.Do(request(method, url, body))
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		return got.StatusCode
	}
	for _, path := range []string{"/v1/rules", "/v1/top", "/v1/denials", "/v1/overrides", "/page/overview", "/ns/default/page/overview", "/page/session"} {
		if got := status(http.MethodGet, s.admin+path, ""); got != http.StatusOK {
			t.Errorf("%s: got %d", path, got)
		}
	}
	stream, err := http.DefaultClient.Do(request(http.MethodGet, s.admin+"/page/stream", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan() // a comment: the reader is known
	for range 6 {
		status(http.MethodPost, s.api+"/v1/take", `{"attributes":{"action":"post","user":"42"}}`)
	}
	takes, denied := 0, false
	for takes < 6 && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), `data: {"at":`); ok {
			_, text, _ = strings.Cut(text, `"total":[`)
			takes += int(text[0] - '0')
			denied = denied || strings.Contains(text, `{"posts-per-hour":[`) && strings.HasPrefix(text[1:], ",1,")
		}
	}
	if takes != 6 || !denied {
		t.Errorf("got %d takes and denied %v, want 6 and the denial: %v", takes, denied, lines.Err())
	}
	if err := s.stop(); err != nil {
		t.Errorf("with a reader: got %v, want an orderly end", err)
	}
}

// TestPageOff: without the page, the admin address has none of it.
func TestPageOff(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) { c.Page = config.PageOff })
	for _, path := range []string{"/", "/app.js", "/page/session", "/page/overview"} {
		if got := call(t, "GET", s.admin+path, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
}

// TestPageIsOneOrigin: other pages, on this machine or elsewhere, get nothing.
func TestPageIsOneOrigin(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/page/session", "/page/overview", "/v1/rules"} {
		for name, header := range map[string][2]string{"another origin": {"Origin", "http://127.0.0.1:1"}, "another site": {"Sec-Fetch-Site", "cross-site"}, "another name": {"Host", "weir.example.com"}} {
			r, err := http.NewRequest(http.MethodGet, s.admin+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Header.Set(header[0], header[1]); header[0] == "Host" {
				r.Host = header[1]
			}
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = got.Body.Close()
			if got.StatusCode != http.StatusForbidden {
				t.Errorf("%s by %s: got %d, want 403", path, name, got.StatusCode)
			}
		}
	}
}
