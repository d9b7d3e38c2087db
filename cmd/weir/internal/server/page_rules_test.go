package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/internal/redistest"
)

// pageToken has all scopes.
const pageToken = "page-token-0123456789abcdef"

// withPage serves rules that the page may save.
func withPage(path string) func(*config.Config) {
	return func(c *config.Config) {
		c.Rules, c.Watch, c.PageWrite, c.Access.Token = path, false, true, pageToken
	}
}

// asPage makes a call as the page does, with a token if it is not empty.
func asPage(t *testing.T, method, url, body, token string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Weir-Page", "1")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) (a answer) {
	t.Helper()
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	a = answer{status: got.StatusCode, text: string(b)}
	_ = json.Unmarshal(b, &a.json) // some answers are no JSON
	return a
}

// The page saves a rules file in one step, with its comments, if nobody else has changed it; the text before stays next
// to it, and the audit says who did it.
func TestPageSaves(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, "# ours\n"+posts(2))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	s := start(t, withPage(path))
	get := asPage(t, "GET", s.admin+"/page/source", "", pageToken)
	if get.status != 200 || get.json["text"] != "# ours\n"+posts(2) || get.json["in_force"] != true || get.json["read_only"] != nil {
		t.Fatalf("got %d %s", get.status, get.text)
	}
	hash := fmt.Sprint(get.json["hash"])
	put := func(text, hash string) answer {
		return asPage(t, "PUT", s.admin+"/page/source", text, pageToken, "If-Match", `"`+hash+`"`)
	}
	for want, a := range map[int]answer{
		http.StatusPreconditionRequired:  asPage(t, "PUT", s.admin+"/page/source", posts(3), pageToken),
		http.StatusPreconditionFailed:    put(posts(3), strings.Repeat("0", 64)),
		http.StatusUnprocessableEntity:   put(broken, hash),
		http.StatusRequestEntityTooLarge: put(strings.Repeat("#", 1<<20+1), hash),
		http.StatusUnauthorized:          asPage(t, "PUT", s.admin+"/page/source", posts(3), "", "If-Match", hash),
	} {
		if a.status != want {
			t.Errorf("got %d %s, want %d", a.status, a.text, want)
		}
	}
	if a := put(broken, hash); !strings.Contains(a.text, `"2:19: unknown key`) {
		t.Errorf("got %s, want the fault with its place", a.text)
	}
	for n := range 5 {
		text := fmt.Sprintf("# edition %d\n%s", n, posts(n+3))
		a := put(text, hash)
		if a.status != 200 || a.json["text"] != text || a.json["in_force"] != true {
			t.Fatalf("got %d %s", a.status, a.text)
		}
		hash = fmt.Sprint(a.json["hash"])
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if len(found) != 4 {
		t.Errorf("got %v, want the file and the three texts before", found)
	}
	for n, want := range map[int]string{1: "# edition 3\n", 3: "# edition 1\n"} {
		if text, _ := os.ReadFile(fmt.Sprintf("%s.%d", path, n)); !strings.HasPrefix(string(text), want) {
			t.Errorf("%d: got %q, want %q", n, text, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v %v, want the mode of the file before", info.Mode(), err)
	}
	if a := asPage(t, "GET", s.api+"/v1/rules", "", pageToken); !strings.Contains(a.text, `"limit":7`) {
		t.Errorf("got %s, want the rules in force", a.text)
	}
	a := asPage(t, "GET", s.admin+"/v1/audit", "", pageToken)
	if strings.Count(a.text, `"rules-changed"`) != 5 || !strings.Contains(a.text, `"before":{"hash":"`) || !strings.Contains(a.text, `"asked":"page"`) || !strings.Contains(a.text, `"token":"WEIR_TOKEN"`) {
		t.Errorf("got %s, want who saved what", a.text)
	}
}

// Rules that the page cannot save are shown with the reason, and a save is refused with it.
func TestPageReadOnly(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	for name, tt := range map[string]struct {
		change func(*config.Config)
		why    string
		status int
	}{
		"without --page-write": {func(c *config.Config) { c.PageWrite = false }, "--page-write", http.StatusForbidden},
		"several instances": {func(c *config.Config) { c.Store, c.Nodes = "redis://"+redis.Addr()+"?timeout=30s", 2 },
			"several instances", http.StatusConflict},
		"one instance": {func(c *config.Config) { c.Store, c.Nodes = "redis://"+redis.Addr()+"?timeout=30s", 1 }, "", http.StatusOK},
		"the demo":     {func(c *config.Config) { c.Rules, c.PageWrite = "", false }, "demo rule", http.StatusForbidden},
		"stdin":        {func(c *config.Config) { c.Rules, c.Stdin, c.PageWrite = "-", []byte(posts(2)), false }, "standard input", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := rulesFile(t, posts(2))
			s := start(t, func(c *config.Config) { withPage(path)(c); tt.change(c) })
			get := asPage(t, "GET", s.admin+"/page/source", "", pageToken)
			why, _ := get.json["read_only"].(string)
			if get.status != 200 || !strings.Contains(why, tt.why) || (why == "") != (tt.why == "") {
				t.Fatalf("got %d %s, want %q", get.status, get.text, tt.why)
			}
			a := asPage(t, "PUT", s.admin+"/page/source", posts(9), pageToken, "If-Match", fmt.Sprint(get.json["hash"]))
			if a.status != tt.status || !strings.Contains(a.text, tt.why) {
				t.Errorf("got %d %s, want %d", a.status, a.text, tt.status)
			}
		})
	}
}

// A text is checked as weir check does. List files are read only where the rules file is, or where the rules in force
// read them.
func TestPageChecks(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	dir := filepath.Dir(path)
	write(t, filepath.Join(dir, "staff.txt"), "ann\n")
	write(t, filepath.Join(dir, "tokens"), "ops sha256:00 read\n")
	outside := filepath.Join(t.TempDir(), "secret.txt")
	write(t, outside, "secret, and no list\n")
	s := start(t, func(c *config.Config) { c.Rules = path })
	check := func(text string) answer { return asPage(t, "POST", s.admin+"/page/check", text, "") }
	if a := check(posts(2)); a.text != `{"errors":[],"warnings":[{"name":"restart-forgets"` && a.json["rules"] != 1.0 || a.status != 200 {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if a := check(broken); !strings.Contains(a.text, `"line":2,"column":19`) || !strings.Contains(a.text, `did you mean`) {
		t.Errorf("got %s, want the fault with its place", a.text)
	}
	list := func(file string) string {
		return fmt.Sprintf("lists:\n  staff: {file: %q}\nrules:\n  - {name: posts, when: {user: {in: staff}}, per: [user], limit: 2, window: 1h}\n", file)
	}
	if a := check(list("staff.txt")); len(a.json["errors"].([]any)) != 0 {
		t.Errorf("got %s, want a list next to the rules", a.text)
	}
	for file, want := range map[string]string{outside: "not in the directory", "../x": "not in the directory", "tokens": "holds keys or tokens"} {
		if a := check(list(file)); !strings.Contains(a.text, want) || strings.Contains(a.text, "secret, and") || strings.Contains(a.text, "sha256") {
			t.Errorf("%s: got %s, want %q", file, a.text, want)
		}
	}
	if a := check("lists:\n  a: {file: staff.txt}\n  b: {file: ./staff.txt}\n" + posts(2)); !strings.Contains(a.text, "the file of another list") {
		t.Errorf("got %s, want that a file is read once", a.text)
	}
	leased := "rules:\n  - {name: posts, per: [user], limit: 600, window: 1h, lease: strict}\n"
	if a := check(leased); strings.Contains(a.text, "never-leased") {
		t.Errorf("got %s, want no warning for two instances", a.text)
	}
	many := start(t, func(c *config.Config) {
		c.Rules, c.Store, c.Nodes = path, "redis://"+redistest.Server(t).Addr()+"?timeout=30s", 40
	})
	if a := asPage(t, "POST", many.admin+"/page/check", leased, ""); !strings.Contains(a.text, "by 40 instances") {
		t.Errorf("got %s, want a warning for 40 instances", a.text)
	}
	patterns := ""
	for i := range 400 {
		patterns += fmt.Sprintf("  - {name: r%d, when: {a: '*x', b: '*x', c: '*x'}, per: [user], limit: 5, window: 1h}\n", i)
	}
	if a := check("rules:\n" + patterns); len(a.json["warnings"].([]any)) != 1000 {
		t.Errorf("got %d warnings, want 1000 of them", len(a.json["warnings"].([]any)))
	}
	if a := check("rules: [" + strings.Repeat("a,", 400_000) + "]"); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d for a text of many values, want 413", a.status)
	}
	if a := check(strings.Repeat("#", 1<<20+1)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d for a large text", a.status)
	}
}

// A caller who is bound to a namespace has only the lists of its own rules read: others may be of other namespaces.
func TestPageListsOfOthers(t *testing.T) {
	t.Parallel()
	dir, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	own := "lists:\n  own: {file: own.txt}\n" + posts(2)
	write(t, filepath.Join(dir, "shop.yaml"), own)
	write(t, filepath.Join(dir, "own.txt"), "ann\n")
	write(t, filepath.Join(dir, "others.txt"), "10.0.0.1/99\n")
	write(t, tokens, access.Line("ops", "all-0123456789", access.Read, "")+"\n"+access.Line("shop", "shop-0123456789", access.Read, "shop")+"\n")
	s := start(t, func(c *config.Config) { c.Rules, c.Access.Tokens = dir, tokens })
	check := func(text, token string) string {
		return asPage(t, "POST", s.admin+"/ns/shop/page/check", text, token).text
	}
	if a := check(own, "shop-0123456789"); !strings.Contains(a, `"errors":[]`) {
		t.Errorf("got %s, want the list of the rules in force", a)
	}
	for token, want := range map[string]string{"shop-0123456789": "bound to a namespace", "all-0123456789": "10.0.0.1/99"} {
		if a := check(strings.Replace(own, "own.txt", "others.txt", 1), token); !strings.Contains(a, want) {
			t.Errorf("%s: got %s, want %q", token, a, want)
		}
	}
}

// try begins a trial of text on a log, or on recorded requests if log is empty.
func try(t *testing.T, s *service, text, log, token string) answer {
	t.Helper()
	return tryAs(t, s, text, log, token, "weir")
}

// tryAs begins a trial on a log in a format.
func tryAs(t *testing.T, s *service, text, log, token, format string) answer {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	job, _ := json.Marshal(map[string]any{"text": text, "recorded": log == "", "log": "day.jsonl", "format": map[string]string{"format": format}})
	_ = form.WriteField("job", string(job))
	if log != "" {
		_ = form.WriteField("log", log)
	}
	_ = form.Close()
	return asPage(t, "POST", s.admin+"/page/try", b.String(), token, "Content-Type", form.FormDataContentType())
}

// result returns the trial when it has ended.
func result(t *testing.T, s *service, token string) (trial map[string]any) {
	t.Helper()
	redistest.Eventually(t, "the trial ends", func() bool {
		trial, _ = asPage(t, "GET", s.admin+"/page/try", "", token).json["trial"].(map[string]any)
		return trial["state"] == "done" || trial["state"] == "failed"
	})
	return trial
}

// newlyDenied returns what a trial has found.
func newlyDenied(t *testing.T, trial map[string]any) any {
	t.Helper()
	of, ok := trial["result"].(map[string]any)
	if !ok {
		t.Fatalf("got %v, want a result", trial)
	}
	return of["comparison"].(map[string]any)["newly_denied"]
}

// A log that is sent is run through the rules in force and through a changed text. That needs a token with scope admin.
func TestPageTriesLog(t *testing.T) {
	t.Parallel()
	page, tokens := withPage(rulesFile(t, posts(5))), filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, access.Line("reader", "reader-0123456789", access.Read, "")+"\n")
	s := start(t, func(c *config.Config) { page(c); c.Access.Tokens = tokens })
	log := ""
	for i := range 8 {
		log += fmt.Sprintf(`{"time":%d,"attributes":{"action":"post","user":"ann"}}`+"\n", 1777620000000000+int64(i))
	}
	if a := try(t, s, posts(3), log, pageToken); a.status != http.StatusAccepted {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	if got := newlyDenied(t, result(t, s, pageToken)); got != 2.0 {
		t.Errorf("got %v newly denied, want the fourth and the fifth", got)
	}
	if a := try(t, s, broken, log, pageToken); a.status != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s, want the faults", a.status, a.text)
	}
	if a := try(t, s, "rules: ["+strings.Repeat("a,", 400_000)+"]", log, pageToken); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d for a text of many values, want 413", a.status)
	}
	if a := tryAs(t, s, posts(3), log, pageToken, strings.Repeat("x", 17<<10)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %.200s for a long format", a.status, a.text)
	}
	head := "--x\r\nContent-Disposition: form-data; name=job\r\nX-Long: " + strings.Repeat("a", 1<<20)
	if a := asPage(t, "POST", s.admin+"/page/try", head, pageToken, "Content-Type", "multipart/form-data; boundary=x"); a.status != http.StatusBadRequest || !strings.Contains(a.text, "head") {
		t.Errorf("got %d %.200s for a part with a long head", a.status, a.text)
	}
	if a := try(t, s, posts(3), "", pageToken); a.status != http.StatusConflict || !strings.Contains(a.text, "--record") {
		t.Errorf("got %d %s, want that nothing is recorded", a.status, a.text)
	}
	if a := asPage(t, "GET", s.admin+"/page/try", "", "reader-0123456789"); a.status != http.StatusOK || a.json["trial"] != nil {
		t.Errorf("got %d %s for a reader who looks for the trial of another, want none", a.status, a.text)
	}
	if a := asPage(t, "DELETE", s.admin+"/page/try", "", "reader-0123456789"); a.status != http.StatusNotFound {
		t.Errorf("got %d %s for a reader who ends the trial of another, want 404", a.status, a.text)
	}
	if a := asPage(t, "DELETE", s.admin+"/page/try", "", pageToken); a.status != http.StatusNoContent {
		t.Errorf("got %d %s", a.status, a.text)
	}
	if a := asPage(t, "GET", s.admin+"/page/try", "", pageToken); a.json["trial"] != nil || a.json["upload"] != true {
		t.Errorf("got %s, want no trial", a.text)
	}

	open := start(t, func(c *config.Config) { c.Rules = rulesFile(t, posts(5)) })
	if a := try(t, open, posts(3), log, ""); a.status != http.StatusForbidden || !strings.Contains(a.text, "tokens") {
		t.Errorf("without tokens: got %d %s", a.status, a.text)
	}
	if a := try(t, open, broken, log, ""); a.status != http.StatusForbidden {
		t.Errorf("without tokens: got %d %s, want that the texts are not read", a.status, a.text)
	}
}

// Recorded requests are tried without a token, with keys as --log-keys says.
func TestPageTriesRecorded(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"": `"key":"ann"`, "hashed": `"key":"`, "none": ""} {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *config.Config) {
				c.Rules, c.Record, c.LogKeys = rulesFile(t, posts(5)), 8<<20, keys
			})
			for range 8 {
				s.post(t, "ann")
			}
			s.post(t, "bob")
			if a := try(t, s, posts(3), "", ""); a.status != http.StatusAccepted {
				t.Fatalf("got %d %s", a.status, a.text)
			}
			trial := result(t, s, "")
			if got := newlyDenied(t, trial); got != 2.0 {
				t.Errorf("got %v newly denied, want the fourth and the fifth", got)
			}
			text, _ := json.Marshal(trial)
			if has := bytes.Contains(text, []byte(`"ann"`)); has != (keys == "") || !bytes.Contains(text, []byte(want)) || want == "" && bytes.Contains(text, []byte(`"key":`)) {
				t.Errorf("got %s", text)
			}
		})
	}
}
