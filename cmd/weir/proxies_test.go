package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/internal/redistest"
)

// The rules of the recipes: one request to /api/ an hour for each client, and any
// number to other paths.
const apiRules = `rules:
  - {name: api, when: {path: {prefix: /api/}}, per: [ip], limit: 1, window: 1h}
`

// spellings are paths that servers resolve to one below /api/.
var spellings = []string{
	"/api/y", "//api/y", "/%61pi/y", "/./api/y", "/api//y", "/api/y?x=/../z",
	"/api/" + strings.Repeat("y", 1500), "http://shop.example/api/y", `/api\y`,
}

// refused are requests that weir refuses or counts, or the proxy refuses.
var refused = []string{
	"http:/api/y", "/x/../api/y", "/x/%2e%2e/api/y", "http://shop.example//x/../api/y", "/api/x%2f..%2f..%2fz", `/api/x\..\..\z`,
}

// proxy is a recipe of docs/guides/proxies.md and the program that it is for.
type proxy struct {
	title string // of its part of the page
	start func(t *testing.T, recipe map[string]string, weir, app string) (addr string)

	down, hung int // the answers while weir is down, and while it does not answer

	// What the page says about forwarding requests without weir: replaced by what, in
	// the recipe of which language.
	language, closed, open string
}

var proxies = []proxy{
	{"nginx", startNginx, 500, 500, "nginx", "error_page 403 = @limited;", "error_page 403 = @limited; error_page 500 = @app;"},
	{"Caddy", startCaddy, 502, 504, "caddyfile", "}\n}\n", "}\n}\nhandle_errors {\n    reverse_proxy app\n}\n"},
	{"HAProxy", startHAProxy, 503, 504, "lua", "status < 300", "status < 300 or status >= 503"},
	{"Apache", startApache, 503, 503, "lua", "return 503", "return apache2.DECLINED"},
}

// recipes returns the snippets of a part of docs/guides/proxies.md by their languages. The
// second one in a language has a 2 behind it, and the third a 3.
func recipes(t *testing.T, title string) (recipe map[string]string, page string) {
	t.Helper()
	src := readFile(t, "../../docs/guides/proxies.md")
	_, part, found := strings.Cut(src, "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/guides/proxies.md has no part %q", title)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	recipe = map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(part, -1) {
		language := m[1]
		for n := 2; recipe[language] != ""; n++ {
			language = m[1] + strconv.Itoa(n)
		}
		recipe[language] = m[2]
	}
	return recipe, src
}

// TestProxies puts the recipes of docs/guides/proxies.md into real proxies, and tries to get
// past the limit.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, tc := range proxies {
		t.Run(tc.title, func(t *testing.T) {
			t.Parallel()
			recipe, _ := recipes(t, tc.title)
			p := startProcess(t, "", apiRules)
			addr := tc.start(t, recipe, strings.TrimPrefix(p.api, "http://"), startApp(t))

			want := func(status int, path string, headers ...string) {
				t.Helper()
				if got, body := visit(t, addr, path, headers...); got != status {
					t.Errorf("%.60s %v: got %d %s, want %d", path, headers, got, body, status)
				}
			}
			want(200, "/other")
			want(200, "/api/first")
			for _, path := range spellings {
				want(429, path)
			}
			for _, path := range refused {
				if got, body := visit(t, addr, path); got == 200 {
					t.Errorf("%s: got %d %s", path, got, body)
				}
			}
			for _, forged := range []string{
				"X-Forwarded-For: 9.9.9.9", "X-Real-IP: 9.9.9.9", "Forwarded: for=9.9.9.9",
				"X-Uri: /other", "X-Forwarded-Uri: /other", "X-Original-URL: /other", "X-Rewrite-URL: /other",
			} {
				want(429, "/api/y", forged)
			}
			want(200, "/other/"+strings.Repeat("y", 1500)) // no rule looks at it
			want(200, "/apix")
			p.end(t)
			want(tc.down, "/other")
		})
	}
}

// TestNginxOutcome follows docs/guides/proxies.md about an outcome that nginx answers with a
// status and body, in addition to denials that it answers with 429.
func TestNginxOutcome(t *testing.T) {
	t.Parallel()
	recipe, page := recipes(t, "nginx")
	page = strings.Join(strings.Fields(page), " ")
	for _, step := range []struct{ after, added string }{
		{"&status.deny=403", "&status.captcha=401"},
		{"error_page 403 = @limited;", "error_page 401 = @captcha;"},
	} {
		if strings.Count(recipe["nginx"], step.after) != 1 || !strings.Contains(page, "add `"+step.added+"` to") {
			t.Fatalf("the recipe has not one %q, or the page does not say to add %q", step.after, step.added)
		}
		recipe["nginx"] = strings.Replace(recipe["nginx"], step.after, step.after+step.added, 1)
	}
	recipe["nginx"] += recipe["nginx3"]
	p := startProcess(t, "", `outcomes:
  captcha: {status: 403, body: {captcha: true}}
rules:
  - {name: pages, when: {path: {prefix: /page/}}, per: [ip], limit: 1, window: 1h, then: captcha}
  - {name: api, when: {path: {prefix: /api/}}, per: [ip], limit: 1, window: 1h}
`)
	addr := startNginx(t, recipe, strings.TrimPrefix(p.api, "http://"), startApp(t))
	for _, want := range []struct {
		path   string
		status int
		body   string
	}{
		{"/page/1", 200, "app"}, {"/page/2", 403, `{"captcha": true}`}, {"/api/1", 200, "app"}, {"/api/2", 429, ""}, {"/other", 200, "app"},
	} {
		got, body := visit(t, addr, want.path)
		if got != want.status || want.body != "" && body != want.body {
			t.Errorf("%s: got %d %s, want %d %s", want.path, got, body, want.status, want.body)
		}
	}
}

// TestNginxKeepsConnections checks that nginx asks over connections that stay open.
func TestNginxKeepsConnections(t *testing.T) {
	t.Parallel()
	recipe, _ := recipes(t, "nginx")
	var questions, connections atomic.Int64
	gate := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { questions.Add(1) }))
	gate.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	gate.Start()
	t.Cleanup(gate.Close)
	addr := startNginx(t, recipe, strings.TrimPrefix(gate.URL, "http://"), startApp(t))
	for range 10 {
		if status, body := visit(t, addr, "/"); status != http.StatusOK {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if questions.Load() != 10 || connections.Load() >= 10 {
		t.Errorf("got %d questions over %d connections, want 10 over fewer", questions.Load(), connections.Load())
	}
}

// TestPathsOnPage checks that the rules of docs/guides/proxies.md count paths with IDs together.
func TestPathsOnPage(t *testing.T) {
	t.Parallel()
	recipe, _ := recipes(t, "One key for many paths")
	p := startProcess(t, "", recipe["yaml"])
	gate := func(path string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.api+"/v1/gate?header.ip=X-Real-IP&header.path=X-Uri", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Real-IP", "192.0.2.7")
		req.Header.Set("X-Uri", path)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for i := range 60 {
		want := http.StatusOK
		if i >= 30 {
			want = http.StatusTooManyRequests
		}
		if got := gate(fmt.Sprintf("/users/%d/orders", i)); got != want {
			t.Errorf("orders of user %d: got %d, want %d", i, got, want)
		}
		if got := gate(fmt.Sprintf("/users/%d", i)); got != http.StatusOK {
			t.Errorf("user %d: got %d", i, got)
		}
	}
	if got := gate("/users/1/name"); got != http.StatusTooManyRequests {
		t.Errorf("got %d, want the limit of all users", got)
	}
}

// TestProxiesPassLimits checks that clients get the fields about limits, of allowed and of
// denied requests. Caddy's recipe has them of denied ones only.
func TestProxiesPassLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range proxies {
		if tc.title == "Caddy" {
			continue
		}
		t.Run(tc.title, func(t *testing.T) {
			t.Parallel()
			recipe, _ := recipes(t, tc.title)
			p := startProcess(t, "", apiRules)
			addr := tc.start(t, recipe, strings.TrimPrefix(p.api, "http://"), startApp(t))
			for _, want := range []struct {
				path   string
				status int
				limit  string
			}{{"/api/y", 200, `"api";r=0`}, {"/api/y", 429, `"api";r=0`}, {"/other", 200, ""}} {
				r, err := http.Get("http://" + addr + want.path)
				if err != nil {
					t.Fatal(err)
				}
				r.Body.Close()
				limit, policy := r.Header.Get("RateLimit"), r.Header.Get("RateLimit-Policy")
				if r.StatusCode != want.status || !strings.HasPrefix(limit, want.limit) || (want.limit == "") != (limit == "") || (want.limit == "") != (policy == "") {
					t.Errorf("%s: got %d with RateLimit %q of %q, want %d with %s", want.path, r.StatusCode, limit, policy, want.status, want.limit)
				}
			}
		})
	}
}

// evasions are requests over the limit with something that weir, or the server of HTTP in it, may refuse.
var evasions = []struct {
	path    string
	headers []string
}{
	{"/api/y", []string{"X-Any: a\x01b"}},
	{"/api/y", []string{"X-Any: \x7f"}},
	{"/api/y", []string{"X-Any: \xff"}},
	{"/api/y", []string{"X-1: " + strings.Repeat("y", 7000), "X-2: " + strings.Repeat("y", 7000), "X-3: " + strings.Repeat("y", 7000)}},
	{"/api/y", []string{"Expect: anything"}},
	{"/api/y", []string{"Upgrade: h2c", "HTTP2-Settings: AAA"}},
	{"/api/y", []string{"Authorization: Bearer unknown"}},
	{"/api/y", []string{"Weir-Namespace: unknown"}},
	{"/api/y", []string{"Origin: http://other.example", "Sec-Fetch-Site: cross-site"}},
	{"/api/\xff", nil},
	{"/api/%ff%01", nil},
	{"/api/" + strings.Repeat("y", 8000), nil},
}

// TestProxiesWithoutWeir checks what docs/guides/proxies.md says about a weir that does
// not answer. A proxy that forwards requests then must not do so because of what a client sends.
func TestProxiesWithoutWeir(t *testing.T) {
	t.Parallel()
	for _, tc := range proxies {
		t.Run(tc.title, func(t *testing.T) {
			t.Parallel()
			recipe, page := recipes(t, tc.title)
			if !strings.Contains(page, fmt.Sprintf("\n| %s | %d | %d |", tc.title, tc.down, tc.hung)) {
				t.Errorf("the page has no row with %d and %d", tc.down, tc.hung)
			}
			p := startProcess(t, "", apiRules)
			weir, app := strings.TrimPrefix(p.api, "http://"), startApp(t)
			closed := tc.start(t, recipe, weir, app)
			if strings.Count(recipe[tc.language], tc.closed) != 1 {
				t.Fatalf("the recipe has not one %q", tc.closed)
			}
			recipe[tc.language] = strings.ReplaceAll(recipe[tc.language], tc.closed, tc.open)
			open := tc.start(t, recipe, weir, app)

			check := func(addr, path string, want int) {
				t.Helper()
				if got, body := visit(t, addr, path); got != want {
					t.Errorf("got %d %s, want %d", got, body, want)
				}
			}
			check(open, "/api/y", 200)
			check(open, "/api/y", 429)
			for _, by := range evasions {
				if got, _ := visit(t, open, by.path, by.headers...); got == 200 {
					t.Errorf("%.60q %.60q: got 200, as if weir did not answer", by.path, by.headers)
				}
			}
			p.halt(t)
			check(closed, "/other", tc.hung)
			check(open, "/api/y", 200)
			p.carryOn(t)
			p.end(t)
			check(closed, "/other", tc.down)
			check(open, "/api/y", 200)
		})
	}
}

// startApp starts the server behind the proxies, and returns its address. It answers whatever it gets, because many
// servers accept what one of Go refuses.
func startApp(t *testing.T) string {
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { app.Close() })
	go func() {
		for {
			c, err := app.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for head := bufio.NewReader(c); ; {
					if line, err := head.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\napp\n")
			}()
		}
	}()
	return app.Addr().String()
}

// visit sends a request as it is written, and returns the status and the body.
func visit(t *testing.T, addr, path string, headers ...string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n", path)
	for _, h := range headers {
		fmt.Fprintf(c, "%s\r\n", h)
	}
	fmt.Fprint(c, "\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.60s: %v", path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// freeAddr returns an address on which nobody listens. No connection gets its port until a
// program listens there.
func freeAddr(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// startProxy runs a program until the test ends, and waits until it listens.
func startProxy(t *testing.T, addr, program string, args ...string) string {
	t.Helper()
	var logs lockedBuffer
	cmd := exec.Command(needtest.Program(t, program), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir(), "XDG_DATA_HOME="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &logs, &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return addr
		}
		select {
		case <-ended:
			t.Fatalf("%s does not start:\n%s", program, logs.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func startNginx(t *testing.T, recipe map[string]string, weir, app string) string {
	t.Helper()
	needtest.Program(t, "nginx")
	dir, addr := t.TempDir(), freeAddr(t)
	text := strings.ReplaceAll(recipe["nginx"], "http://app", "http://"+app)
	upstream := strings.ReplaceAll(recipe["nginx2"], "127.0.0.1:8080", weir)
	conf := fmt.Sprintf(`daemon off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
%[5]s
	server {
		listen %[2]s;
%[3]s
		location @app { proxy_pass http://%[4]s; }
	}
}
`, dir, addr, text, app, upstream)
	return startProxy(t, addr, "nginx", "-p", dir, "-e", "stderr", "-c", writeFile(t, filepath.Join(dir, "nginx.conf"), conf))
}

func startCaddy(t *testing.T, recipe map[string]string, weir, app string) string {
	t.Helper()
	addr := freeAddr(t)
	text := strings.NewReplacer("127.0.0.1:8080", weir, "reverse_proxy app", "reverse_proxy "+app).Replace(recipe["caddyfile"])
	conf := fmt.Sprintf("{\n\tadmin off\n}\nhttp://%s, http://shop.example:%s {\n%s\treverse_proxy %s\n}\n", addr, addr[strings.LastIndexByte(addr, ':')+1:], text, app)
	return startProxy(t, addr, "caddy", "run", "--config", writeFile(t, filepath.Join(t.TempDir(), "Caddyfile"), conf), "--adapter", "caddyfile")
}

func startHAProxy(t *testing.T, recipe map[string]string, weir, app string) string {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	script := writeFile(t, filepath.Join(dir, "weir.lua"), strings.ReplaceAll(recipe["lua"], "127.0.0.1:8080", weir))
	const defaults = "defaults\n    mode http\n    timeout client 20s\n    timeout server 20s\n    timeout connect 5s\n"
	conf := strings.NewReplacer("/etc/haproxy/weir.lua", script, "frontend web\n", defaults+"frontend web\n    bind "+addr+"\n").Replace(recipe["haproxy"]) +
		"backend app\n    server app " + app + "\n"
	return startProxy(t, addr, "haproxy", "-db", "-f", writeFile(t, filepath.Join(dir, "haproxy.cfg"), conf))
}

func startApache(t *testing.T, recipe map[string]string, weir, app string) string {
	t.Helper()
	needtest.Program(t, "apache2")
	needtest.File(t, "/usr/share/lua/5.3/socket/http.lua", "LuaSocket")
	dir, addr := t.TempDir(), freeAddr(t)
	script := writeFile(t, filepath.Join(dir, "weir.lua"), strings.ReplaceAll(recipe["lua"], "127.0.0.1:8080", weir))
	var conf strings.Builder
	fmt.Fprintf(&conf, "ServerRoot %s\nPidFile %s/pid\nDefaultRuntimeDir %s\nListen %s\nServerName shop.example\nErrorLog /dev/stderr\n", dir, dir, dir, addr)
	for _, module := range []string{"mpm_event", "authz_core", "proxy", "proxy_http", "lua"} {
		fmt.Fprintf(&conf, "LoadModule %[1]s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", module)
	}
	conf.WriteString(strings.NewReplacer("/etc/apache2/weir.lua", script, "http://app/", "http://"+app+"/").Replace(recipe["apacheconf"]))
	return startProxy(t, addr, "apache2", "-DFOREGROUND", "-f", writeFile(t, filepath.Join(dir, "apache.conf"), conf.String()))
}
