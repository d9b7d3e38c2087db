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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/needtest"
)

// The rules of the recipes: one request to /api/ an hour for each client, and any
// number to other paths.
const apiRules = `rules:
  - {name: api, when: {path: {prefix: /api/}}, per: [ip], limit: 1, window: 1h}
`

// spellings are paths that servers resolve to one below /api/.
var spellings = []string{
	"/api/y", "//api/y", "/x/../api/y", "/%61pi/y", "/./api/y", "/x/%2e%2e/api/y", "/api//y", "/api/y?x=/../z",
	"/api/" + strings.Repeat("y", 1500),
}

// TestProxies puts the recipes of docs/http.md into real proxies, and tries to get
// past the limit.
func TestProxies(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(string(src), -1) {
		recipes[m[1]] = m[2]
	}
	for _, tc := range []struct {
		name  string
		start func(t *testing.T, recipe, weir, app string) (addr string)
		down  int // the answer while weir is down
	}{
		{"nginx", startNginx, 500},
		{"caddyfile", startCaddy, 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			recipe := recipes[tc.name]
			if recipe == "" {
				t.Fatalf("docs/http.md has no recipe for %s", tc.name)
			}
			p := startProcess(t, "", apiRules)
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "app") }))
			t.Cleanup(app.Close)
			addr := tc.start(t, recipe, strings.TrimPrefix(p.api, "http://"), strings.TrimPrefix(app.URL, "http://"))

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
			for _, forged := range []string{"X-Forwarded-For: 9.9.9.9", "X-Real-IP: 9.9.9.9", "X-Uri: /other", "X-Forwarded-Uri: /other", "Forwarded: for=9.9.9.9"} {
				want(429, "/api/y", forged)
			}
			want(200, "/other/"+strings.Repeat("y", 1500)) // no rule looks at it
			want(200, "/apix")
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_, _ = p.Process.Wait()
			p.stopped = true
			want(tc.down, "/other")
		})
	}
}

// visit sends a request as it is written, and returns the status and the body.
func visit(t *testing.T, addr, path string, headers ...string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
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

// freeAddr returns an address on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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

func startNginx(t *testing.T, recipe, weir, app string) string {
	t.Helper()
	needtest.Program(t, "nginx")
	dir, addr := t.TempDir(), freeAddr(t)
	recipe = strings.NewReplacer("127.0.0.1:8080", weir, "http://app", "http://"+app).Replace(recipe)
	conf := fmt.Sprintf(`daemon off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	server {
		listen %[2]s;
%[3]s
	}
}
`, dir, addr, recipe)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProxy(t, addr, "nginx", "-p", dir, "-e", "stderr", "-c", file)
}

func startCaddy(t *testing.T, recipe, weir, app string) string {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	recipe = strings.ReplaceAll(recipe, "127.0.0.1:8080", weir)
	conf := fmt.Sprintf("{\n\tadmin off\n}\nhttp://%s, http://shop.example:%s {\n%s\treverse_proxy %s\n}\n", addr, addr[strings.LastIndexByte(addr, ':')+1:], recipe, app)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProxy(t, addr, "caddy", "run", "--config", file, "--adapter", "caddyfile")
}
