package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

// posts returns rules that admit n posts an hour.
func posts(n int) string {
	return fmt.Sprintf("rules:\n  - {name: posts, when: {action: post}, per: [user], limit: %d, window: 1h}\n", n)
}

const broken = "rules:\n  - {name: posts, limt: 5}\n"

func withRules(path string, watch bool) func(*config.Config) {
	return func(c *config.Config) { c.Rules, c.Watch = path, watch }
}

// wantPosts checks that n posts of a user are allowed and the next one is not.
func wantPosts(t *testing.T, s *service, user string, n int) {
	t.Helper()
	for i := range n + 1 {
		if allowed, _ := s.post(t, user); allowed != (i < n) {
			t.Fatalf("post %d of %d: got allowed %v", i+1, n, allowed)
		}
	}
}

func TestReloadKeepsCounters(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, false))
	wantPosts(t, s, "ann", 2)
	write(t, path, posts(3))
	if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 200 || a.json["rules"] != 1.0 {
		t.Fatalf("got %d %s, want one rule loaded", a.status, a.text)
	}
	wantPosts(t, s, "ann", 1)
	wantPosts(t, s, "bob", 3)
}

// A reload frees the rules of the start. The test is not parallel, because it measures the memory of the process.
func TestReloadFreesRules(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  - {name: r%d, when: {tenant: t%d}, per: [user], limit: 5, window: 1h}\n", i, i)
	}
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	s := start(t, withRules(rulesFile(t, b.String()), false))
	started := live()
	if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	redistest.Eventually(t, "the memory of the first rules is free", func() bool { return live()-started < (started-before)/4 })
}

// Rules from the standard input stay in force, and a reload says why.
func TestReloadStdin(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) { c.Rules, c.Stdin = "-", []byte(posts(2)) })
	a := call(t, "POST", s.admin+"/-/reload", "")
	if a.status != 409 || !strings.Contains(fmt.Sprint(a.json["detail"]), "the rules are from the standard input") {
		t.Errorf("got %d %s, want that the input has ended", a.status, a.text)
	}
	wantPosts(t, s, "ann", 2)

	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Rules, cfg.Stdin = "127.0.0.1:0", "127.0.0.1:0", "-", []byte(broken)
	if err := server.Run(t.Context(), cfg, io.Discard, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "stdin:2:19: ") {
		t.Errorf("got %v, want the fault with its place", err)
	}
}

func TestReloadRefusesABadFile(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, false))
	before := call(t, "GET", s.api+"/v1/rules", "")
	write(t, path, broken)
	a := call(t, "POST", s.admin+"/-/reload", "")
	if a.status != 422 || !strings.Contains(fmt.Sprint(a.json["errors"]), "rules.yaml:2:19: ") {
		t.Errorf("got %d %s, want the fault with its place", a.status, a.text)
	}
	if faults, _ := a.json["errors"].([]any); len(faults) != 1 {
		t.Errorf("got %q, want the fault once", faults)
	}
	if got := call(t, "GET", s.api+"/v1/rules", ""); got.text != before.text {
		t.Errorf("got rules %s, want %s", got.text, before.text)
	}
	if got := call(t, "GET", s.admin+"/readyz", ""); got.status != 200 {
		t.Errorf("got %d, want ready", got.status)
	}
	for _, want := range []string{`weir_rules_reload_success{namespace="default"} 0`, `weir_rules_reload_total{namespace="default",result="failure"} 1`} {
		if got := call(t, "GET", s.admin+"/metrics", ""); !strings.Contains(got.text, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
	wantPosts(t, s, "ann", 2)
}

func TestReloadWithoutItsFile(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, false))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	a := call(t, "POST", s.admin+"/-/reload", "")
	if a.status != 422 || !strings.Contains(a.text, "no such file or directory; the old rules stay in force") {
		t.Errorf("got %d %s, want 422 that says that the old rules stay", a.status, a.text)
	}
	wantPosts(t, s, "ann", 2)
}

func TestReloadTakesPost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if a := call(t, "GET", s.admin+"/-/reload", ""); a.status != 405 || !strings.Contains(a.text, "use POST") {
		t.Errorf("got %d %s, want 405 that says what to use", a.status, a.text)
	}
}

func TestReloadWithoutFile(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if a := call(t, "POST", s.admin+"/-/reload", ""); a.status != 409 {
		t.Errorf("got %d %s, want 409", a.status, a.text)
	}
}

func TestWatchFile(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, true))
	wantPosts(t, s, "ann", 2)

	write(t, path, broken)
	s.logs.await(t, 1, `msg="rules refused; the old rules stay in force" asked=file`)
	wantPosts(t, s, "bob", 2)

	write(t, path, posts(3))
	s.logs.await(t, 1, `msg="rules loaded" asked=file`)
	wantPosts(t, s, "ann", 1)
}

func TestWatchList(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "blocked.txt") // in another directory
	write(t, list, "ann\n")
	path := rulesFile(t, "lists:\n  blocked: {file: "+list+"}\nrules:\n"+
		"  - {name: blocked, when: {user: {in: blocked}}, then: deny}\n")
	s := start(t, withRules(path, true))
	if allowed, rule := s.post(t, "ann"); allowed || rule != "blocked" {
		t.Fatalf("got allowed %v by %q, want denied by blocked", allowed, rule)
	}
	write(t, list, "bob\n")
	s.logs.await(t, 1, `msg="rules loaded" asked=file`)
	if allowed, _ := s.post(t, "ann"); !allowed {
		t.Error("got ann denied after she left the list")
	}
}

// Kubernetes mounts a file as a link into ..data, itself a link to a directory
// that changes, and swaps ..data.
// Lists that together hold the same bytes as before have changed all the same.
func TestWatchValueMovesBetweenLists(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, `lists: {staff: {file: staff.txt}, guests: {file: guests.txt}}
rules:
  - {name: staff, when: {user: {in: staff}}, then: allow}
  - {name: guests, when: {user: {in: guests}}, then: deny}
`)
	staff, guests := filepath.Join(filepath.Dir(path), "staff.txt"), filepath.Join(filepath.Dir(path), "guests.txt")
	write(t, staff, "ann\n")
	write(t, guests, "bob\n")
	s := start(t, withRules(path, true))
	write(t, staff, "ann\nbob\n")
	write(t, guests, "")
	s.logs.await(t, 1, `msg="rules loaded" asked=file`)
}

// A list of rules that were refused is watched, too, where nothing else is.
func TestWatchMissingListComes(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	list := filepath.Join(filepath.Dir(path), "lists", "staff.txt")
	if err := os.Mkdir(filepath.Dir(list), 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, withRules(path, true))
	write(t, path, posts(3))
	s.logs.await(t, 1, `msg="rules loaded" asked=file`) // the watch is under way
	write(t, path, "lists: {staff: {file: lists/staff.txt}}\nrules: [{name: staff, when: {user: {in: staff}}, then: allow}]\n")
	s.logs.await(t, 1, `msg="rules refused; the old rules stay in force" asked=file`)
	write(t, list, "ann\n")
	s.logs.await(t, 2, `msg="rules loaded" asked=file`)
}

// A list that was missing may come as an empty one.
func TestWatchEmptyListComes(t *testing.T) {
	t.Parallel()
	const withList = "lists: {staff: {file: staff.txt}}\nrules: [{name: staff, when: {user: {in: staff}}, then: allow}]\n"
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, true))
	write(t, path, withList)
	s.logs.await(t, 1, `msg="rules refused; the old rules stay in force" asked=file`)
	write(t, filepath.Join(filepath.Dir(path), "staff.txt"), "")
	s.logs.await(t, 1, `msg="rules loaded" asked=file`)
}

func TestWatchLinkSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name string, n int) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "rules.yaml"), posts(n))
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version("..v1", 2)
	link("..v1", "..data")
	link(filepath.Join("..data", "rules.yaml"), "rules.yaml")
	s := start(t, withRules(filepath.Join(dir, "rules.yaml"), true))
	wantPosts(t, s, "ann", 2)

	for i, n := range []int{3, 4} { // the second time the watch must have followed
		version(fmt.Sprintf("..v%d", i+2), n)
		link(fmt.Sprintf("..v%d", i+2), "..tmp")
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		s.logs.await(t, i+1, `msg="rules loaded" asked=file`)
		wantPosts(t, s, "ann", 1)
	}
}

// Deployments swap a link to a whole directory.
func TestWatchDirectorySwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	swap := func(n int) {
		release := fmt.Sprintf("release%d", n)
		if err := os.Mkdir(filepath.Join(dir, release), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, release, "rules.yaml"), posts(n))
		if err := errors.Join(os.Symlink(release, current+".new"), os.Rename(current+".new", current)); err != nil {
			t.Fatal(err)
		}
	}
	swap(2)
	s := start(t, withRules(filepath.Join(current, "rules.yaml"), true))
	wantPosts(t, s, "ann", 2)
	for i, n := range []int{3, 4} {
		swap(n)
		s.logs.await(t, i+1, `msg="rules loaded" asked=file`)
		wantPosts(t, s, "ann", 1)
	}
}

func TestWatchDirectoryMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "weir", "conf")
	path := filepath.Join(dir, "rules.yaml")
	fill := func(n int) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, posts(n))
	}
	fill(2)
	s := start(t, withRules(path, true))
	for i, n := range []int{3, 4} {
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		s.logs.await(t, i+1, `msg="rules refused; the old rules stay in force" asked=file`)
		fill(n)
		s.logs.await(t, i+1, `msg="rules loaded" asked=file`)
	}
	wantPosts(t, s, "ann", 4)
}

func TestWatchLinksInACircle(t *testing.T) {
	t.Parallel()
	path := rulesFile(t, posts(2))
	s := start(t, withRules(path, true))
	s.logs.await(t, 1, "msg=listening")
	if err := errors.Join(os.Remove(path), os.Symlink("rules.yaml", path)); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, `msg="rules refused; the old rules stay in force" asked=file`)
	write(t, path, posts(3))
	s.logs.await(t, 1, `msg="rules loaded" asked=file`)
	wantPosts(t, s, "ann", 3)
}

// A reload answers 422 to a fault in whatever it reads again, with its place, as often as
// it is asked, and what was in force stays.
func TestReloadRefuses(t *testing.T) {
	t.Parallel()
	ops := access.NewToken()
	a := newAuthority(t)
	a.server(t)
	other := newAuthority(t)
	other.server(t)
	text := func(path string) string {
		t.Helper()
		b := readFile(t, path)
		return b
	}
	line := access.Line("ops", ops, access.All, "") + "\n"
	list := "lists:\n  staff: {file: staff.txt}\nrules:\n  - {name: posts, when: {user: {in: staff}}, limit: 5, window: 1h}\n"
	koala := "[rules]\nrule : [count] [user=+] [time=3600; count=5;] [result=2; return=501]\n" +
		"\n[result]\n2 : { \"Ret_type\":2, \"Ret_code\":0, \"Err_no\":10, \"Err_msg\":\"\", \"Str_reason\":\"Deny\", \"Need_vcode\":0, \"Vcode_len\":0, \"Vcode_type\":0, \"Other\":\"\", \"Version\":0 }\n"
	envoy := "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 5}\n"
	tokens := func(dir string, c *config.Config) { c.Access.Tokens = filepath.Join(dir, "tokens") }
	for name, tc := range map[string]struct {
		files, then map[string]string
		config      func(dir string, c *config.Config)
		want        []string
	}{
		"rules":            {map[string]string{"r.yaml": posts(5)}, map[string]string{"r.yaml": broken}, nil, []string{"r.yaml:2:19: "}},
		"a list":           {map[string]string{"r.yaml": list, "staff.txt": "ann\n"}, map[string]string{"staff.txt": "-"}, nil, []string{"r.yaml:2:", "staff.txt"}},
		"a token":          {map[string]string{"r.yaml": posts(5), "tokens": line}, map[string]string{"tokens": line + "shop x\n"}, tokens, []string{"tokens:2:6: ", "want sha256:"}},
		"no token":         {map[string]string{"r.yaml": posts(5), "tokens": line}, map[string]string{"tokens": "# none\n"}, tokens, []string{"tokens: holds no token; weir token new adds one"}},
		"no tokens file":   {map[string]string{"r.yaml": posts(5), "tokens": line}, map[string]string{"tokens": "-"}, tokens, []string{"tokens: no such file"}},
		"tokens, no rules": {map[string]string{"tokens": line}, map[string]string{"tokens": "shop x\n"}, tokens, []string{"tokens:1:6: "}},
		"tokens and rules": {map[string]string{"r.yaml": posts(5), "tokens": line}, map[string]string{"tokens": "shop x\n", "r.yaml": broken}, tokens, []string{"tokens:1:6: ", "r.yaml:2:19: "}},
		"tokens and no file of rules": {map[string]string{"r.yaml": posts(5), "tokens": line}, map[string]string{"tokens": "shop x\n", "r.yaml": "-"}, tokens,
			[]string{"tokens:1:6: ", "r.yaml: no such file"}},
		"a certificate": {map[string]string{"r.yaml": posts(5), "c.pem": text(a.path("server.pem")), "c.key": text(a.path("server.key"))}, map[string]string{"c.key": text(other.path("server.key"))},
			func(dir string, c *config.Config) {
				c.RESPListen = "rediss://127.0.0.1:0"
				c.Access.TLSCert, c.Access.TLSKey = filepath.Join(dir, "c.pem"), filepath.Join(dir, "c.key")
			}, []string{"c.pem, ", "c.key: tls: private key does not match", "want a chain of certificates"}},
		"koala's rules": {map[string]string{"koala.conf": koala}, map[string]string{"koala.conf": strings.Replace(koala, "[count]", "[cuont]", 1)},
			func(dir string, c *config.Config) { c.Rules, c.Koala = "", filepath.Join(dir, "koala.conf") }, []string{"koala.conf:2:"}},
		"Envoy's rules": {map[string]string{"envoy/edge.yaml": envoy}, map[string]string{"envoy/edge.yaml": strings.Replace(envoy, "hour", "huor", 1)},
			func(dir string, c *config.Config) { c.Rules, c.Envoy.Dir = "", filepath.Join(dir, "envoy") }, []string{"edge.yaml:4:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put := func(files map[string]string) {
				for name, text := range files {
					path := filepath.Join(dir, name)
					if text == "-" {
						if err := os.Remove(path); err != nil {
							t.Fatal(err)
						}
						continue
					}
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					write(t, path, text)
				}
			}
			put(tc.files)
			s := start(t, func(c *config.Config) {
				c.Watch = false
				if _, ok := tc.files["r.yaml"]; ok {
					c.Rules = filepath.Join(dir, "r.yaml")
				}
				if tc.config != nil {
					tc.config(dir, c)
				}
			})
			reload := func() answer { return ask(t, http.DefaultTransport, "POST", s.admin+"/-/reload", ops, "") }
			fine := 200
			if name == "tokens, no rules" {
				fine = 409
			}
			if got := reload(); got.status != fine {
				t.Fatalf("got %d %s before the fault, want %d", got.status, got.text, fine)
			}
			put(tc.then)
			for range 2 {
				got := reload()
				if got.status != 422 {
					t.Errorf("got %d %s, want 422", got.status, got.text)
				}
				text := got.text
				for _, want := range tc.want {
					if !strings.Contains(text, want) {
						t.Errorf("got %s, want %s", text, want)
					}
				}
			}
			put(tc.files) // mended
			if got := reload(); got.status != fine {
				t.Errorf("got %d %s after the fault, want %d", got.status, got.text, fine)
			}
		})
	}
}
