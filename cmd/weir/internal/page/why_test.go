package page_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/overrides"
	"github.com/weirhq/weir/cmd/weir/internal/page"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/rulefile/ruletest"
)

const whyRules = `
rules:
  - {name: bad, when: {ip: 192.0.2.9}, then: deny}
  - {name: posts, when: {action: post}, per: [user], limit: 3, window: 1h, export: true}
  - {name: uploads, when: {bytes: "*"}, per: [user], sum: bytes, limit: 100, window: {fixed: 1m}, ban: {for: 10m}}
  - {name: trial, per: [user], limit: 1, window: 1h, mode: shadow}
  - {name: views, when: {page: "*"}, per: [page], window: {cells: 1h, n: 4}}
  - {name: jobs, when: {action: job}, per: [user], limit: 500, window: 1h, hold: 5m}
`

// scene is a page about one engine.
type scene struct {
	t      *testing.T
	engine *weir.Engine
	space  *namespace.Namespace
	server *httptest.Server
	page   *page.Page
}

func newScene(t *testing.T, keys top.KeyForm) *scene {
	t.Helper()
	text, err := top.NewKeyText(keys, "secret")
	if err != nil {
		t.Fatal(err)
	}
	tops := top.New(top.Config{Keys: 10, Text: text}, namespace.Default)
	s := &scene{t: t, engine: scripttest.Engine(t, scripttest.Rules(t, whyRules), weir.WithObserver(tops))}
	book := overrides.New(overrides.Config{Store: kept.NewMemory(nil)})
	book.Follow(namespace.Default, s.engine.Override)
	s.space = namespace.New(namespace.Default, s.engine, 0, tops).WithKept(&namespace.Kept{Overrides: book, Audit: audit.New(audit.Config{})})
	s.page = page.New(page.Config{Namespaces: namespace.NewSet(s.space)})
	page.AddDenials(s.page)
	s.server = httptest.NewServer(s.page)
	t.Cleanup(func() { s.server.Close(); _ = s.engine.Close() })
	return s
}

func (s *scene) take(hits int64, attributes ...string) {
	s.t.Helper()
	if _, err := s.engine.Take(s.t.Context(), weir.Request{Attributes: weir.Attributes(attributes...), Hits: hits}); err != nil {
		s.t.Fatal(err)
	}
}

// object is an answer.
type object map[string]any

// at returns the value at a path, such as "rules.0.used".
func (o object) at(path string) any {
	var v any = map[string]any(o)
	for part := range strings.SplitSeq(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[part]
		case []any:
			i := 0
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

func (s *scene) call(method, path, body string, status int) object {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Weir-Page", "1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var o object
	if err := json.NewDecoder(answer.Body).Decode(&o); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.StatusCode != status {
		s.t.Errorf("%s %s: got status %d, want %d: %v", method, path, answer.StatusCode, status, o)
	}
	return o
}

func (s *scene) wants(o object, pairs ...any) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got, want := fmt.Sprint(o.at(pairs[i].(string))), fmt.Sprint(pairs[i+1]); got != want {
			s.t.Errorf("%s: got %s, want %s", pairs[i], got, want)
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	s.take(3, "action", "post", "user", "ann")
	s.take(2, "action", "post", "user", "ann", "bytes", "40", "other", "x")
	s.take(1, "user", "bob", "ip", "192.0.2.9")
	s.wants(s.call("GET", "/page/live", "", 200),
		"keys", "plain", "decisions.0.rule", "bad", "decisions.0.differ.0.reason", "verdict", "decisions.0.rules.0.numbers", false,
		"decisions.1.rule", "posts", "decisions.1.whole", true, "decisions.1.attributes", "map[action:post bytes:40 user:ann]",
		"decisions.1.rules.0.used", 3, "decisions.1.rules.0.hits", 2, "decisions.1.rules.0.quota", 3, "decisions.1.rules.0.window", "sliding 1h",
		"decisions.1.rules.1.allowed", true, "decisions.1.rules.1.unit", "bytes",
		"decisions.1.differ.0.most", 0, "decisions.1.differ.0.quota", 5,
		"decisions.2.allowed", true, "decisions.2.differ.0.shadow", true)
	for query, want := range map[string]string{
		"rule=posts": "posts", "reason=verdict": "bad", "q=bob": "bad", "shadow=no&n=1": "bad", "outcome=allow": "<nil>",
	} {
		s.wants(s.call("GET", "/page/live?"+query, "", 200), "decisions.0.rule", want)
	}
	for query, field := range map[string]string{"reason=mood": "reason", "n=0": "n", "n=1001": "n", "shadow=no&shadow=yes": "shadow", "x=1": "x", "shadow=perhaps": "shadow"} {
		s.wants(s.call("GET", "/page/live?"+query, "", 400), "field", field)
	}
}

// A list of decisions has at most 2 MiB, however long their values are as JSON.
func TestLiveIsBounded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"ann": 1000, strings.Repeat("\x01", 2000): 173} {
		if got := page.Listed(1000, value); len(got) != want || len(slices.Concat(got...)) > 2<<20 {
			t.Errorf("got %d decisions of %d bytes in all, want %d", len(got), len(slices.Concat(got...)), want)
		}
	}
}

// Lines of the journal, which a restart leaves, come after the decisions that are known whole.
func TestLiveHidesKeys(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyNone)
	s.take(4, "action", "post", "user", "ann")
	o := s.call("GET", "/page/live", "", 200)
	s.wants(o, "keys", "none", "decisions.0.attributes", nil, "decisions.0.cut", true, "decisions.0.test", nil, "decisions.0.rules.0.key", nil)
	s.wants(s.call("GET", "/page/key?rule=posts&a.user=ann", "", 200), "hidden", "none", "denials", "[]")
}

func TestLiveStream(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	for range page.MaxStreams + 1 {
		answer, err := http.Head(s.server.URL + "/page/live/stream")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("HEAD: got %d, want that it watches nothing", answer.StatusCode)
		}
	}
	answer, err := http.Get(s.server.URL + "/page/live/stream?rule=posts")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Scan() // the stream has begun
	s.take(4, "action", "post", "user", "ann")
	s.take(101, "bytes", "101", "user", "bob") // another rule
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var o object
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			s.wants(o, "decisions.0.rule", "posts", "decisions.0.rules.0.key", "ann", "missed", nil)
			break
		}
	}
	for range page.MaxStreams - 1 {
		answer, err := http.Get(s.server.URL + "/page/live/stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
	}
	s.wants(s.call("GET", "/page/live/stream", "", 503), "status", 503)
	s.page.EndStreams()
	for lines.Scan() { // until the stream ends
	}
}

// Holders of tokens of one namespace get half of the streams. A stream ends when its token is moved to another namespace.
func TestLiveStreamOfToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	bind := func(space string) {
		const hash = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
		if err := os.WriteFile(path, []byte("shop "+hash+" scopes=read namespace="+space+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bind(namespace.Default)
	keys := scripttest.Keys(t, path)
	s := newScene(t, top.KeyPlain)
	p := page.New(page.Config{Auth: &access.Authenticator{Keys: keys, Reach: access.ReachNamed}, Namespaces: namespace.NewSet(s.space)})
	page.AddDenials(p)
	server := httptest.NewServer(p)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/page/live/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a")
	var lines *bufio.Scanner
	for i := range page.MaxStreams/2 + 1 {
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		if i == page.MaxStreams/2 {
			if answer.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("one stream more: got %d, want 503", answer.StatusCode)
			}
			break
		}
		lines = bufio.NewScanner(answer.Body)
		if lines.Scan(); lines.Text() != ": weir" {
			t.Fatalf("stream %d: got %d %s", i+1, answer.StatusCode, lines.Text())
		}
	}
	bind("other")
	if _, err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	s.take(4, "action", "post", "user", "ann")
	for lines.Scan() { // until the stream ends
		if strings.HasPrefix(lines.Text(), "data: ") {
			t.Fatalf("got %s", lines.Text())
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	s.take(2, "action", "post", "user", "ann")
	o := s.call("POST", "/page/why", `{"attributes": {"action": "post", "user": "ann"}, "hits": 2}`, 200)
	s.wants(o, "allowed", false, "rule", "posts", "rules.0.rule", "bad", "rules.0.matched", false,
		"rules.1.rule", "posts", "rules.1.used", 2, "rules.1.hits", 2, "rules.1.reason", "limit", "rules.1.leaving.kind", "sliding",
		"rules.1.leaving.hits.0.hits", 2, "differ.0.most", 1, "differ.0.quota", 4)
	at, err := time.Parse(time.RFC3339, fmt.Sprint(o.at("rules.1.leaving.hits.0.at")))
	leave, err2 := time.Parse(time.RFC3339, fmt.Sprint(o.at("rules.1.leaving.hits.0.leave")))
	if err != nil || err2 != nil || leave.Sub(at) != time.Hour {
		t.Errorf("got hits of %v that leave at %v, want an hour later", at, leave)
	}
	s.wants(s.call("POST", "/page/why", `{"attributes": {"action": "post", "user": "ann"}}`, 200), "allowed", true, "hits", 1)
	s.wants(s.call("POST", "/page/why", `{"attributes": {"user": "eve", "ip": "192.0.2.9"}}`, 200), "allowed", false, "rules.0.reason", "verdict", "differ.0.rule", "bad")
	for body, field := range map[string]string{
		`{"attributes": {}}`:                               "attributes",
		`{"attributes": {"user": "ann"}, "hits": 0}`:       "hits",
		`{"attributes": {"": "ann"}}`:                      "attributes",
		`{"attributes": {"user": "` + long(1025) + `"}}`:   "attributes.user",
		`{"attributes": {"bytes": "many", "user": "ann"}}`: "attributes.bytes",
	} {
		s.wants(s.call("POST", "/page/why", body, 400), "field", field)
	}
	s.call("POST", "/page/why", `{"attributes": 1}`, 400)
	s.call("POST", "/page/why", `{"attributes": {"user": "`+long(200<<10)+`"}}`, 413)
	if u, _ := s.engine.Usage(t.Context(), "posts", weir.Attributes("user", "ann")); u.Used != 2 {
		t.Errorf("got %d used, want 2: the question counts nothing", u.Used)
	}
}

func long(n int) string { return strings.Repeat("x", n) }

// A step that the page offers is one that a rules test takes, whatever the values are.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	s.take(4, "action", "post", "user", "4: [\"2\" # é\u2028\u0007\n- x")
	s.take(4, "action", "post", "user", "true")
	dir := t.TempDir()
	b := []byte("cases:\n")
	for i := range 2 {
		step, _ := s.call("GET", "/page/live?shadow=no", "", 200).at(fmt.Sprintf("decisions.%d.test", i)).(string)
		b = fmt.Appendf(b, "  - name: case %d\n    steps:\n      %s\n", i, strings.ReplaceAll(strings.TrimSpace(step), "\n", "\n      "))
	}
	for name, text := range map[string][]byte{"posts.yaml": []byte(whyRules), "posts_test.yaml": b} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ruletest.Run(t, filepath.Join(dir, "posts_test.yaml"))
	if t.Failed() {
		t.Logf("%s", b)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	by := audit.Caller{Token: "ops"}
	s.take(3, "action", "post", "user", "ann")
	s.take(1, "action", "post", "user", "ann")
	s.take(1, "action", "post", "user", "bob")
	if _, err := s.space.SetOverride(t.Context(), by, overrides.Override{Rule: "posts", Attributes: weir.Attributes("user", "ann"), Limit: 6, Note: "until friday"}); err != nil {
		t.Fatal(err)
	}
	if err := s.space.Forget(t.Context(), by, "posts", weir.Attributes("user", "bob")); err != nil {
		t.Fatal(err)
	}
	s.wants(s.call("GET", "/page/key?rule=posts&a.user=ann", "", 200),
		"key", "ann", "kind", "limit", "per.0", "user", "used", 3, "quota", 6, "remaining", 3, "override.limit", 6, "override.note", "until friday", "overrides", true,
		"leaving.hits.0.hits", 3, "denials.0.rule", "posts", "denials.0.whole", false, "denials.0.rules.0.used", 3, "denials.1", nil,
		"changes.0.action", "override-set", "changes.0.token", "ops", "changes.1", nil, "sets", nil)
	s.wants(s.call("GET", "/page/key?rule=posts&a.user=bob", "", 200), "used", 0, "override", nil, "changes.0.action", "forget", "denials", "[]", "leaving.hits", "[]")

	s.take(1, "bytes", "60", "user", "cid")
	s.wants(s.call("GET", "/page/key?rule=uploads&a.user=cid", "", 200), "used", 60, "unit", "bytes", "bans", true, "leaving.hits.0.seconds", 60, "leaving.kind", "fixed")
	s.take(1, "bytes", "60", "user", "cid")
	o := s.call("GET", "/page/key?rule=uploads&a.user=cid", "", 200)
	s.wants(o, "strikes", 1, "sets", "banned", "denials.0.rules.0.reason", "limit")
	if o.at("banned_until") == nil {
		t.Error("got no end of the ban")
	}
	s.take(1, "page", "/home")
	s.wants(s.call("GET", "/page/key?rule=views&a.page=/home", "", 200), "kind", "counter", "quota", nil, "leaving.hits.0.seconds", 900, "overrides", nil)
	for range 120 {
		s.take(2, "action", "job", "user", "ann")
	}
	o = s.call("GET", "/page/key?rule=jobs&a.user=ann", "", 200)
	s.wants(o, "holds", 120, "held.0.hits", 2, "held.100", nil, "sets", "holds")
	at, _ := time.Parse(time.RFC3339, fmt.Sprint(o.at("held.99.at")))
	if leave, _ := time.Parse(time.RFC3339, fmt.Sprint(o.at("held.99.leave"))); leave.Sub(at) != 5*time.Minute {
		t.Errorf("got a hold from %v to %v, want five minutes", at, leave)
	}
	for query, status := range map[string]int{"rule=nope&a.user=ann": 404, "rule=bad": 404, "a.user=ann": 400, "rule=posts": 400, "rule=posts&user=ann": 400, "rule=posts&a.user=ann&a.user=bob": 400} {
		s.call("GET", "/page/key?"+query, "", status)
	}
}

// An explanation of thousands of rules with long keys, which a client may read slowly, is refused.
func TestLargeExplanation(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	var src strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&src, "- {name: r%d, per: [a, b, c], limit: 5, window: 1h}\n", i)
	}
	if err := s.engine.SetRules(scripttest.Rules(t, "rules:\n"+src.String())); err != nil {
		t.Fatal(err)
	}
	ask := func(n, status int) object {
		long := strings.Repeat("x", n)
		return s.call("POST", "/page/why", `{"attributes":{"a":"`+long+`","b":"`+long+`","c":"`+long+`"}}`, status)
	}
	s.wants(ask(10, 200), "rules.999.rule", "r999")
	ask(1000, 413)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newScene(t, top.KeyPlain)
	for i := range 30 {
		s.take(int64(1+i%3), "action", "post", "user", fmt.Sprintf("u%02d", i))
	}
	o := s.call("GET", "/page/keys?rule=posts&prefix=u1", "", 200)
	s.wants(o, "complete", true, "per.0", "user", "keys.0.used", 3, "keys.9.used", 1, "keys.10", nil, "keys.0.quota", 3)
	s.wants(s.call("GET", "/page/keys?rule=posts&n=5", "", 200), "complete", false, "keys.5", nil)
	s.wants(s.call("GET", "/page/keys?rule=trial", "", 409), "status", 409)
	s.call("GET", "/page/keys?rule=nope", "", 404)
	s.call("GET", "/page/keys?rule=posts&n=201", "", 400)
	for range 4 {
		end, _ := s.space.BeginExport("")
		t.Cleanup(end)
	}
	s.call("GET", "/page/keys?rule=posts", "", 429)
}

// All calls need the scope read, and none more.
func TestScopesOfDenials(t *testing.T) {
	t.Parallel()
	p := page.New(page.Config{})
	page.AddDenials(p)
	var all []string
	for name, need := range p.Calls() {
		if all = append(all, name); need != access.Read {
			t.Errorf("%s: got scope %v, want read", name, need)
		}
	}
	slices.Sort(all)
	if want := "[GET /page/key GET /page/keys GET /page/live GET /page/live/stream POST /page/why]"; fmt.Sprint(all) != want {
		t.Errorf("got %v, want %s", all, want)
	}
}
