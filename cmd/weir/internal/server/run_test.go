package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

func TestDemoDeniesTheSixthPost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 6 {
		allowed, rule := s.post(t, "42")
		if want := i < 5; allowed != want {
			t.Errorf("post %d: got allowed %v, want %v", i+1, allowed, want)
		}
		if i == 5 && rule != "posts-per-hour" {
			t.Errorf("got denied by %q, want posts-per-hour", rule)
		}
	}
	if allowed, _ := s.post(t, "43"); !allowed {
		t.Error("got another user denied")
	}
}

func TestHealthOnBothAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, base := range []string{s.api, s.admin} {
		for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
			if a := call(t, "GET", base+path, ""); a.status != 200 || a.text != want {
				t.Errorf("%s: got %d %q, want 200 %q", path, a.status, a.text, want)
			}
		}
	}
	for _, url := range []string{s.api + "/metrics", s.admin + "/v1/take"} {
		if a := call(t, "GET", url, ""); a.status != 404 || a.json["title"] != "Not Found" {
			t.Errorf("%s: got %d %s, want a problem with 404", url, a.status, a.text)
		}
	}
	if a := call(t, "GET", s.admin+"/debug/pprof/cmdline", ""); a.status != 200 {
		t.Errorf("got %d from pprof, want 200", a.status)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for range 6 {
		s.post(t, "42")
	}
	a := call(t, "GET", s.admin+"/metrics", "")
	for _, want := range []string{
		`weir_decisions_total{namespace="default",outcome="allow",rule="",verb="take"} 5`,
		`weir_decisions_total{namespace="default",outcome="deny",rule="posts-per-hour",verb="take"} 1`,
		`weir_rule_over_total{mode="enforce",namespace="default",rule="posts-per-hour"} 1`,
		`weir_store_keys{namespace="default",rule="posts-per-hour"} 1`,
		`weir_store_full_total 0`,
		`weir_rules{namespace="default"} 1`,
		`weir_rules_reload_success{namespace="default"} 1`,
	} {
		if !strings.Contains(a.text, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

// halfRequest sends a take up to the middle of its body.
func halfRequest(t *testing.T, s *service) (conn net.Conn, rest string) {
	t.Helper()
	const body = `{"attributes":{"action":"post","user":"42"}}`
	conn = connect(t, strings.TrimPrefix(s.api, "http://"))
	// The answer 100 says that the handler is reading.
	fmt.Fprintf(conn, "POST /v1/take HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q %v, want 100", line, err)
	}
	if _, err := io.WriteString(conn, body[:10]); err != nil {
		t.Fatal(err)
	}
	return conn, body[10:]
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, rest := halfRequest(t, s)
	defer conn.Close()
	s.cancel()
	s.logs.await(t, 1, "msg=draining")
	if a := call(t, "GET", s.admin+"/readyz", ""); a.status != 503 {
		t.Errorf("got %d, want not ready", a.status)
	}
	if _, err := io.WriteString(conn, rest); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("got %v, want the answer that was under way", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", resp.StatusCode)
	}
	if err := s.stop(); err != nil {
		t.Errorf("got %v, want an orderly end", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.api, "http://")); err == nil {
		t.Error("got a connection after the end")
	}
}

// keepAsking sends a request again and again on one connection until an answer
// announces that it is the last. It returns what goes wrong before.
func keepAsking(conn net.Conn, request string, answers *atomic.Int64) error {
	r := bufio.NewReader(conn)
	for {
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		answers.Add(1)
		if resp.Close {
			return nil
		}
	}
}

func TestDrainLosesNoRequest(t *testing.T) {
	t.Parallel()
	s := startKoala(t, koalaHome(t), nil)
	const (
		clients = 16
		body    = `{"attributes":{"action":"post","user":"42"}}`
	)
	requests := map[string]string{
		strings.TrimPrefix(s.api, "http://"): fmt.Sprintf("POST /v1/take HTTP/1.1\r\nHost: weir\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		s.addr:                               "GET /rule/browse?act=leak&uid=7 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
	}
	var answers atomic.Int64
	ended := make(chan error, clients)
	for addr, request := range requests {
		for range clients / len(requests) {
			conn := connect(t, addr)
			go func() { ended <- keepAsking(conn, request, &answers) }()
		}
	}
	for answers.Load() < 10*clients {
		runtime.Gosched()
	}
	if err := s.stop(); err != nil {
		t.Errorf("got %v, want an orderly end", err)
	}
	for range clients {
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a last answer that says so", err)
		}
	}
}

func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) { c.DrainTimeout = 50 * time.Millisecond })
	conn, _ := halfRequest(t, s)
	defer conn.Close()
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "still running after 50ms") {
		t.Errorf("got %v, want that a request was still running", err)
	}
}

// TestEndOfAllListeners ends a service with every address that it can have: all that it has started ends with it.
func TestEndOfAllListeners(t *testing.T) {
	t.Parallel()
	s := startKoala(t, koalaHome(t), func(c *config.Config) {
		c.GRPCListen, c.RESPListen, c.MetricsListen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	})
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if s.logs.count("ending without it") > 0 {
		t.Error("got goroutines that have not ended, want none")
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		change func(*config.Config)
		want   string
	}{
		{func(c *config.Config) { c.Listen = ":99999" }, `listen: ":99999": port out of range`},
		{func(c *config.Config) { c.Listen = taken.Addr().String() }, "listen: " + taken.Addr().String() + " is in use; end the program that listens there, or choose another address with --listen"},
		{func(c *config.Config) { c.Admin = taken.Addr().String() }, "admin: " + taken.Addr().String() + " is in use; end the program that listens there, or choose another address with --admin"},
		{func(c *config.Config) { c.Rules = "no-such.yaml" }, "open no-such.yaml: no such file"},
		{func(c *config.Config) { c.Rules = rulesFile(t, "rules: [{name: a, limt: 5}]") }, `limt`},
	} {
		c := config.Default()
		c.Listen, c.Admin = "127.0.0.1:0", "127.0.0.1:0"
		tc.change(&c)
		err := server.Run(context.Background(), c, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}
