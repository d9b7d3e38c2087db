package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// rulesDir returns a directory with a file for each namespace.
func rulesDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// postsIn takes until a user of a namespace is denied, and returns how many takes
// were allowed.
func (s *service) postsIn(t *testing.T, namespace, user string) (allowed int) {
	t.Helper()
	for range 20 {
		a := call(t, "POST", s.api+"/ns/"+namespace+"/v1/take", `{"attributes":{"action":"post","user":"`+user+`"}}`)
		if a.status != 200 {
			t.Fatalf("namespace %s: got %d %s, want 200", namespace, a.status, a.text)
		}
		if a.json["allowed"] != true {
			return allowed
		}
		allowed++
	}
	return allowed
}

// metricLines checks that the service's metrics have the lines.
func (s *service) metricLines(t *testing.T, want ...string) {
	t.Helper()
	text := call(t, "GET", s.admin+"/metrics", "").text
	for _, line := range want {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("got no line %s", line)
		}
	}
}

// Each file in a directory is a namespace with its own rules and counters.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{
		"default.yaml": posts(1), "a.yaml": posts(2), "b.yaml": posts(3),
		"a_test.yaml": "tests: []", ".b.yaml.swp": "x", ".hidden.yaml": "x", "staff.txt": "ann", "weir.schema.json": "{}",
	})
	s := start(t, withRules(dir, false))
	for name, want := range map[string]int{"default": 1, "a": 2, "b": 3} {
		if got := s.postsIn(t, name, "ann"); got != want {
			t.Errorf("namespace %s: got %d posts, want %d", name, got, want)
		}
	}
	s.metricLines(t,
		`weir_decisions_total{namespace="a",outcome="allow",rule="",verb="take"} 2`,
		`weir_decisions_total{namespace="b",outcome="deny",rule="posts",verb="take"} 1`,
		`weir_store_keys{namespace="b",rule="posts"} 1`, `weir_rules{namespace="a"} 1`,
		`weir_rules_reload_success{namespace="default"} 1`, `weir_namespaces 3`,
	)
	for name, want := range map[string]string{"a": `"used":{"hits":2`, "b": `"used":{"hits":3`} {
		if a := call(t, "GET", s.api+"/ns/"+name+"/v1/top?rule=posts", ""); !strings.Contains(a.text, want) {
			t.Errorf("top of %s: got %s, want %s", name, a.text, want)
		}
		if a := call(t, "GET", s.api+"/ns/"+name+"/v1/denials", ""); strings.Count(a.text, `"rule":"posts"`) != 1 {
			t.Errorf("denials of %s: got %s, want one", name, a.text)
		}
		if a := call(t, "GET", s.api+"/ns/"+name+"/v1/rules", ""); !strings.Contains(a.text, `/`+name+`.yaml"`) {
			t.Errorf("rules of %s: got %s, want its file", name, a.text)
		}
	}
	a := call(t, "POST", s.admin+"/-/reload", "")
	if loaded, _ := a.json["namespaces"].(map[string]any); a.status != 200 || len(loaded) != 3 || !strings.Contains(a.text, `"b":{"rules":1,"hash":"`) {
		t.Errorf("got %d %s, want what is in force in each namespace", a.status, a.text)
	}
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if text := s.logs.text.String(); strings.Contains(text, "not served") || !strings.Contains(text, "rules=3 namespaces=3") {
		t.Errorf("got log\n%s", text)
	}
}

// A fault in one file leaves the others alone, at the start and afterwards. Files
// come and go while the service runs. What was counted stays.
func TestDirectoryChanges(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{"a.yaml": posts(2), "b.yaml": broken, "c.yml": posts(1), "d e.yaml": posts(1)})
	s := start(t, withRules(dir, true))
	s.logs.await(t, 1, `rules refused; the namespace has none in force`)
	s.logs.await(t, 1, `c.yml:1:1: not served: want the name to end in .yaml`)
	s.logs.await(t, 1, `not served: not the name of a namespace`)
	if got := s.postsIn(t, "a", "ann"); got != 2 {
		t.Errorf("got %d posts in a, want 2", got)
	}
	want := func(name string, status int, part string) {
		t.Helper()
		if a := call(t, "POST", s.api+"/ns/"+name+"/v1/take", takePost); a.status != status || !strings.Contains(a.text, part) {
			t.Errorf("namespace %s: got %d %s, want %d %s", name, a.status, a.text, status, part)
		}
	}
	want("b", 503, "namespace b: has no rules in force")
	want("new", 404, "not found")
	want("c", 404, "not found")
	if a := call(t, "POST", s.api+"/v1/take", takePost); a.status != 404 || !strings.Contains(a.text, `namespace \"default\": not found`) {
		t.Errorf("without a namespace: got %d %s, want 404", a.status, a.text)
	}
	if a := call(t, "GET", s.api+"/readyz", ""); a.status != 200 || !strings.Contains(a.text, "namespaces without rules, because their files have errors: 1\n") {
		t.Errorf("got %d %s, want ready, and the fault", a.status, a.text)
	}
	s.metricLines(t, `weir_rules_reload_success{namespace="a"} 1`, `weir_rules_reload_success{namespace="b"} 0`)

	write(t, filepath.Join(dir, "b.yaml"), posts(3))
	s.logs.await(t, 1, `msg="rules loaded" namespace=b asked=file`)
	if got := s.postsIn(t, "b", "ann"); got != 3 {
		t.Errorf("got %d posts in b, want 3", got)
	}
	write(t, filepath.Join(dir, "new.yaml"), posts(1))
	s.logs.await(t, 1, `msg="rules loaded" namespace=new asked=file`)
	want("new", 200, `"allowed":true`)

	write(t, filepath.Join(dir, "a.yaml"), broken)
	s.logs.await(t, 1, `msg="rules refused; the old rules stay in force" namespace=a asked=file`)
	if got := s.postsIn(t, "a", "bob"); got != 2 {
		t.Errorf("got %d posts under the old rules of a, want 2", got)
	}
	s.metricLines(t, `weir_rules_reload_success{namespace="a"} 0`, `weir_rules_reload_success{namespace="b"} 1`)
	a := call(t, "POST", s.admin+"/-/reload", "")
	if faults := fmt.Sprint(a.json["errors"]); a.status != 422 || !strings.Contains(faults, "a.yaml:2:19: ") || !strings.Contains(faults, "c.yml:1:1: ") || strings.Contains(faults, "b.yaml") {
		t.Errorf("got %d %s, want the faults of a and of the names", a.status, a.text)
	}

	if err := os.Remove(filepath.Join(dir, "new.yaml")); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, `msg="namespace gone" namespace=new`)
	want("new", 404, "not found")
	if text := call(t, "GET", s.admin+"/metrics", "").text; strings.Contains(text, `namespace="new"`) {
		t.Error("got metrics of a namespace that is gone")
	}
	write(t, filepath.Join(dir, "new.yaml"), posts(2))
	s.logs.await(t, 2, `msg="rules loaded" namespace=new asked=file`)
	if got := s.postsIn(t, "new", "42"); got != 1 {
		t.Errorf("got %d posts more in a namespace that came back, want 1: one was counted before", got)
	}
	if a := call(t, "GET", s.api+"/ns/new/v1/audit", ""); !strings.Contains(a.text, `"},"after":{"asked":"file","rules":0}`) {
		t.Errorf("got %s, want that the rules have gone", a.text)
	}
	all := openStream(t, s.api+"/ns/new/v1/events", "unknown")
	all.next(t) // a gap
	for i, want := range []bool{true, false, true} {
		if e, kind, _ := all.next(t); kind != "rules_changed" || (e.Data.Hash != "") != want {
			t.Errorf("%d: got %s %+v, want that the rules came, went and came", i, kind, e.Data)
		}
	}
}

// An empty directory changes nothing: the file system may not be mounted.
func TestDirectoryIsEmptied(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{"a.yaml": posts(2)})
	s := start(t, withRules(dir, true))
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, "holds no rules file: want one NAME.yaml for each namespace")
	if got := s.postsIn(t, "a", "ann"); got != 2 {
		t.Errorf("got %d posts under the rules in force, want 2", got)
	}
	s.metricLines(t, `weir_rules_reload_success{namespace="a"} 0`)
	write(t, filepath.Join(dir, "b.yaml"), posts(1))
	s.logs.await(t, 1, `msg="rules loaded" namespace=b`)
	s.logs.await(t, 1, `msg="namespace gone" namespace=a`)
}

// A directory that is swapped by a link, as Kubernetes does it, is read again.
func TestDirectoryLink(t *testing.T) {
	t.Parallel()
	first, second := rulesDir(t, map[string]string{"a.yaml": posts(1)}), rulesDir(t, map[string]string{"a.yaml": posts(2), "b.yaml": posts(1)})
	link := filepath.Join(t.TempDir(), "rules")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	s := start(t, withRules(link, true))
	s.logs.await(t, 1, "msg=listening")
	if err := os.Symlink(second, link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	s.logs.await(t, 1, `msg="rules loaded" namespace=b`)
	if got := s.postsIn(t, "a", "ann"); got != 2 {
		t.Errorf("got %d posts, want the 2 of the new file", got)
	}
}

// Tenants share no counter of any front end, though they use the same names: those of
// CL.THROTTLE, whose limits are in the calls, included.
func TestTenantsShareNothing(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{"eu.yaml": posts(1), "shop.yaml": posts(1)})
	for name, change := range map[string]func(*config.Config){
		"memory": func(*config.Config) {},
		"disk":   func(c *config.Config) { c.Data = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *config.Config) {
				c.Rules, c.RESPListen = dir, "127.0.0.1:0"
				change(c)
			})
			port := redisPort(t, s.resp(t))
			for _, tenant := range []string{"eu", "shop"} {
				for _, tc := range []struct{ command, first, second string }{
					{"CL.THROTTLE user123 0 1 60", "0", "1"},
					{"WEIR.TAKE action post user 7", "1", "0"},
				} {
					args := append([]string{"-p", port, "--user", tenant, "--pass", "any", "--no-auth-warning"}, strings.Fields(tc.command)...)
					for _, want := range []string{tc.first, tc.second} {
						out, err := exec.CommandContext(t.Context(), needtest.Program(t, "redis-cli"), args...).CombinedOutput()
						if got, _, _ := strings.Cut(string(out), "\n"); err != nil || got != want {
							t.Errorf("%s: %s: got %q %v, want %s", tenant, tc.command, out, err, want)
						}
					}
				}
			}
		})
	}
}

// Without any rules that can be served, the service does not start.
func TestDirectoryRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		files map[string]string
		want  []string
	}{
		{map[string]string{"rules.txt": posts(1)}, []string{"holds no rules file: want one NAME.yaml for each namespace, such as default.yaml"}},
		{map[string]string{"rules.yml": posts(1)}, []string{"holds no rules file", "rules.yml:1:1: not served"}},
		{map[string]string{"a.yaml": broken, "b.yaml": broken}, []string{"a.yaml:2:19: ", "b.yaml:2:19: "}},
	} {
		c := config.Default()
		c.Listen, c.Admin, c.Rules = "127.0.0.1:0", "127.0.0.1:0", rulesDir(t, tc.files)
		err := server.Run(context.Background(), c, io.Discard, io.Discard)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want %s", tc.files, err, want)
			}
		}
	}
}

// A token of one namespace reaches the others neither at the API nor at the admin
// address, whose calls concern all namespaces.
func TestTokensOfNamespaces(t *testing.T) {
	t.Parallel()
	dir := rulesDir(t, map[string]string{"default.yaml": posts(5), "a.yaml": posts(5), "b.yaml": posts(5)})
	file, lines := filepath.Join(t.TempDir(), "tokens"), ""
	tokens := map[string]string{}
	for name, namespace := range map[string]string{"ops": "", "home": "default", "a": "a"} {
		tokens[name] = access.NewToken()
		lines += access.Line(name, tokens[name], access.All, namespace) + "\n"
	}
	write(t, file, lines)
	s := start(t, func(c *config.Config) { c.Rules, c.Access.Tokens = dir, file })
	for _, tc := range []struct {
		token, method, url string
		want               int
	}{
		{"a", "POST", s.api + "/v1/take", 200},
		{"a", "POST", s.api + "/ns/a/v1/take", 200},
		{"a", "POST", s.api + "/ns/b/v1/take", 403},
		{"a", "POST", s.api + "/ns/default/v1/take", 403},
		{"a", "GET", s.api + "/ns/b/v1/rules", 403},
		{"a", "GET", s.admin + "/metrics", 403},
		{"a", "POST", s.admin + "/-/reload", 403},
		{"a", "GET", s.admin + "/debug/pprof/heap", 403},
		{"home", "POST", s.api + "/v1/take", 200},
		{"home", "POST", s.api + "/ns/b/v1/take", 403},
		{"home", "GET", s.admin + "/metrics", 403},
		{"ops", "POST", s.api + "/ns/b/v1/take", 200},
		{"ops", "GET", s.admin + "/metrics", 200},
		{"ops", "POST", s.admin + "/-/reload", 200},
	} {
		if a := ask(t, http.DefaultTransport, tc.method, tc.url, tokens[tc.token], takePost); a.status != tc.want {
			t.Errorf("%s: %s %s: got %d %s, want %d", tc.token, tc.method, tc.url, a.status, a.text, tc.want)
		}
	}
	text := ask(t, http.DefaultTransport, "GET", s.admin+"/metrics", tokens["ops"], "").text
	for _, line := range []string{
		`weir_access_refused_total{listener="http",reason="namespace"} 4`, `weir_access_refused_total{listener="admin",reason="namespace"} 4`,
		`weir_decisions_total{namespace="a",outcome="allow",rule="",verb="take"} 2`,
		`weir_decisions_total{namespace="b",outcome="allow",rule="",verb="take"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("got no line %s", line)
		}
	}
}
