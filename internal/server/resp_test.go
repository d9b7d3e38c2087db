package server_test

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/needtest"
)

var respAddress = regexp.MustCompile(`resp=(\S+)`)

// resp waits until the service has logged its address for Redis clients, and returns
// it as a URL.
func (s *service) resp(t *testing.T) string {
	t.Helper()
	s.logs.await(t, 1, `msg="listening for Redis clients"`)
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	return respAddress.FindStringSubmatch(s.logs.text.String())[1]
}

// redisPort returns the port in the URL of a service.
func redisPort(t *testing.T, url string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(url, "redis://"), "rediss://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startRESP runs a service that serves Redis clients.
func startRESP(t *testing.T, rules string, changes ...func(*config.Config)) *service {
	t.Helper()
	file := rulesFile(t, rules)
	return start(t, func(c *config.Config) {
		withRules(file, false)(c)
		c.RESPListen = "127.0.0.1:0"
		for _, change := range changes {
			change(c)
		}
	})
}

// waits matches durations that count down.
var waits = regexp.MustCompile(`"\d+\.\d+"`)

// TestRESPDocs runs the examples of the manual: redis-cli in order, and the programs
// whose language and Redis client are installed.
func TestRESPDocs(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../docs/resp.md")
	s := startRESP(t, blocks[0].text)
	port := redisPort(t, s.resp(t))
	examples, programs := 0, 0
	for i, b := range blocks {
		switch {
		case b.language == "sh" && strings.HasPrefix(b.text, "redis-cli"):
			examples++
			args := strings.Fields(strings.Replace(b.text, "redis-cli -p 6380", "--no-raw -p "+port, 1))
			out, err := exec.CommandContext(t.Context(), needtest.Program(t, "redis-cli"), args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s%v\n%s", b.text, err, out)
			}
			got, want := waits.ReplaceAllString(string(out), "WAIT"), waits.ReplaceAllString(blocks[i+1].text, "WAIT")
			if strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%sgot\n%s\nwant\n%s", b.text, out, blocks[i+1].text)
			}
		case interpreters[b.language] != nil:
			if runProgram(t, b, port) {
				programs++
			}
		}
	}
	if examples < 5 {
		t.Errorf("got %d examples, want the manual's", examples)
	}
	t.Logf("ran %d programs of other languages", programs)
}

// interpreters are the programs that run an example, with what shows that its Redis
// client is installed.
var interpreters = map[string][]string{
	"python": {"/usr/bin/python3", "-c", "import redis"},
	"js":     {"node", "-e", "require('redis')"},
	"php":    {"php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"},
}

// runProgram runs an example, which prints 1 and 0. It reports false if the client is not
// installed.
func runProgram(t *testing.T, b fence, port string) bool {
	t.Helper()
	with := interpreters[b.language]
	if err := exec.CommandContext(t.Context(), with[0], with[1:]...).Run(); err != nil {
		t.Logf("%s: no client: %v", b.language, err)
		return false
	}
	file := filepath.Join(t.TempDir(), "example."+b.language)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(b.text, "6380", port)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), with[0], file).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "1\n0" {
		t.Errorf("%s: got %v\n%s\nwant 1 and 0", b.language, err, out)
	}
	return true
}

// rawPing sends PING over c and returns the reply.
func rawPing(t *testing.T, c net.Conn) string {
	t.Helper()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(reply)
}

// The listener speaks TLS and Unix sockets, has the locks and the bounds of the others,
// and ends with the service.
func TestRESPListeners(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.server(t)
	socket := filepath.Join(t.TempDir(), "resp")
	for name, tc := range map[string]struct {
		change func(*config.Config)
		dial   func(address string) (net.Conn, error)
		want   string
	}{
		"plain": {
			func(*config.Config) {},
			func(address string) (net.Conn, error) { return net.Dial("tcp", address) },
			"+PONG",
		},
		"a Unix socket": {
			func(c *config.Config) { c.RESPListen = "unix:" + socket },
			func(string) (net.Conn, error) { return net.Dial("unix", socket) },
			"+PONG",
		},
		"TLS": {
			func(c *config.Config) {
				c.RESPListen = "rediss://127.0.0.1:0"
				c.Access.TLSCert, c.Access.TLSKey = a.path("server.pem"), a.path("server.key")
			},
			func(address string) (net.Conn, error) {
				return tls.Dial("tcp", address, a.via(t, "", false).TLSClientConfig)
			},
			"+PONG",
		},
		"tokens": {
			func(c *config.Config) { c.Access.Token = "weir_secretsecretsecret" },
			func(address string) (net.Conn, error) { return net.Dial("tcp", address) },
			"-NOAUTH Authentication required: send AUTH and a token",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRESP(t, "rules: []", tc.change)
			url := s.resp(t)
			address := url[strings.LastIndex(url, "/")+1:]
			c, err := tc.dial(address)
			if err != nil {
				t.Fatal(err)
			}
			if got := rawPing(t, c); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if metrics := call(t, http.MethodGet, s.admin+"/metrics", "").text; tc.want == "+PONG" && !strings.Contains(metrics, `weir_resp_commands_total{command="PING"} 1`) {
				t.Errorf("got no count of the command in\n%s", metrics)
			}
			open, err := tc.dial(address)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			if err := s.stop(); err != nil {
				t.Errorf("got %v from a service with an open connection, want an orderly end", err)
			}
		})
	}
}

// More connections than --max-connections close those that wait.
func TestRESPConnections(t *testing.T) {
	t.Parallel()
	s := startRESP(t, "rules: []", func(c *config.Config) { c.Bounds.Connections = 8 })
	address := strings.TrimPrefix(s.resp(t), "redis://")
	for range 20 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if got := rawPing(t, c); got != "+PONG" {
		t.Errorf("got %s", got)
	}
}

// redis-benchmark finds a server that it can measure.
func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	s := startRESP(t, "rules: []")
	for _, pipeline := range []string{"1", "16"} {
		out, err := exec.CommandContext(t.Context(), needtest.Program(t, "redis-benchmark"), "-p", redisPort(t, s.resp(t)),
			"-c", "50", "-n", "2000", "-P", pipeline, "-r", "1000", "-q", "CL.THROTTLE", "key:__rand_int__", "15", "30", "60").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "requests per second") || strings.Contains(string(out), "rror") {
			t.Errorf("got %v\n%s", err, out)
		}
	}
}
