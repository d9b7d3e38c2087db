package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/needtest"
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

// TestRESPDocs runs the examples of the manual: redis-cli in order, and the programs in
// examples/resp. The benchmarks, which are a separate module, run those in Go.
func TestRESPDocs(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../../../docs/reference/resp.md")
	s := startRESP(t, blocks[0].text)
	port := redisPort(t, s.resp(t))
	examples := 0
	for i, b := range blocks {
		if b.language != "sh" || !strings.HasPrefix(b.text, "redis-cli") {
			continue
		}
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
	}
	if examples < 5 {
		t.Errorf("got %d examples, want the manual's", examples)
	}
	page := readFile(t, "../../../../docs/reference/resp.md")
	for _, client := range clients {
		text := readFile(t, "../../../../examples/resp/"+client.file)
		row := regexp.MustCompile("\\(\\.\\./\\.\\./examples/resp/" + client.file + "\\)[^|]*\\| `?([^`|]*)`?").FindStringSubmatch(page)
		if row == nil {
			t.Errorf("the page has no row for %s", client.file)
		} else if setting := strings.TrimSuffix(row[1], " of 0"); !strings.Contains(text, setting) && setting != "it has none " {
			t.Errorf("%s does not have the setting %q of the page", client.file, setting)
		}
		runProgram(t, fence{client.language, text}, port)
	}
}

// clients are the Redis clients of other languages: the file in examples/resp, what a program
// that uses one has in it, the interpreter, and the arguments that find out whether the
// client is installed.
var clients = []struct {
	name, file, language, mark string
	run, probe                 []string
}{
	{"redis-py", "redis-py.py", "python", "import redis", []string{"/usr/bin/python3"}, []string{"-c", "import redis"}},
	{"node-redis", "node-redis.js", "js", "require('redis')", []string{"node"}, []string{"-e", "require('redis')"}},
	{"ioredis", "ioredis.js", "js", "require('ioredis')", []string{"node"}, []string{"-e", "require('ioredis')"}},
	{"phpredis", "phpredis.php", "php", "new Redis()", []string{"php"}, []string{"-r", "exit(extension_loaded('redis') ? 0 : 1);"}},
	{"Predis", "predis.php", "php", "new Predis", []string{"php"}, []string{"-r", "exit((@include 'Predis/Autoloader.php') ? 0 : 1);"}},
}

// runProgram runs a program as a subtest. It prints 1 and 0. Where its
// client is not installed, the subtest fails if WEIR_REQUIRE_CLIENTS=1, which make resp-clients
// sets, and is skipped otherwise.
func runProgram(t *testing.T, b fence, port string) {
	t.Helper()
	for _, client := range clients {
		if client.language != b.language || !strings.Contains(b.text, client.mark) {
			continue
		}
		t.Run(client.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "example."+b.language)
			write(t, file, strings.ReplaceAll(b.text, "6380", port))
			modules, err := filepath.Abs("../../../../bin/clients/node_modules") // where scripts/install-clients puts them
			if err != nil {
				t.Fatal(err)
			}
			command := func(args ...string) *exec.Cmd {
				c := exec.CommandContext(t.Context(), client.run[0], append(client.run[1:], args...)...)
				c.Env = append(os.Environ(), "NODE_PATH="+modules+":"+os.Getenv("NODE_PATH"))
				return c
			}
			if err := command(client.probe...).Run(); err != nil {
				if os.Getenv("WEIR_REQUIRE_CLIENTS") == "1" {
					t.Fatalf("%s is not installed: %v", client.name, err)
				}
				t.Skipf("%s is not installed (make resp-clients installs it): %v", client.name, err)
			}
			out, err := command(file).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "1\n0" {
				t.Errorf("got %v\n%s\nwant 1 and 0", err, out)
			}
		})
		return
	}
	t.Errorf("a program in %s uses none of the clients that the test knows:\n%s", b.language, b.text)
}

// The default pipelines of redis-py, node-redis and ioredis, which are transactions, are
// decided as one batch. With a wrong command nothing of them is counted.
func TestRESPTransactions(t *testing.T) {
	t.Parallel()
	s := startRESP(t, "rules: [{name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}]")
	port := redisPort(t, s.resp(t))
	for _, b := range []fence{
		{language: "python", text: `import redis

r = redis.Redis(port=6380, retry=None)
wrong = r.pipeline()
wrong.execute_command("WEIR.TAKE", "action", "post", "user", "py")
wrong.execute_command("WEIR.TAKE", "action")
try:
    wrong.execute()
    print("counted")
except redis.ResponseError:
    pass
pipe = r.pipeline()
for _ in range(2):
    pipe.execute_command("WEIR.TAKE", "HITS", 3, "action", "post", "user", "py")
pipe.execute_command("WEIR.USAGE", "posts", "user", "py")
first, second, usage = pipe.execute()
assert usage[5] == 3, usage
print(first[0])
print(second[0])
`},
		{language: "js", text: `const { createClient } = require('redis');

async function main() {
  const r = await createClient({ url: 'redis://localhost:6380', disableOfflineQueue: true }).connect();
  const take = ['WEIR.TAKE', 'HITS', '3', 'action', 'post', 'user', 'node'];
  await r.multi().addCommand(take).addCommand(['WEIR.TAKE', 'action']).exec().then(() => console.log('counted'), () => {});
  for (const d of await r.multi().addCommand(take).addCommand(take).exec()) {
    console.log(Number(d.allowed ?? d[0]));
  }
  r.destroy();
}
main();
`},
		{language: "js", text: `const Redis = require('ioredis');

async function main() {
  const r = new Redis(6380, { protocol: 2, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
  const take = ['WEIR.TAKE', 'HITS', 3, 'action', 'post', 'user', 'ioredis'];
  await r.multi().call(...take).call('WEIR.TAKE', 'action').exec().then(() => console.log('counted'), () => {});
  for (const [err, d] of await r.multi().call(...take).call(...take).exec()) {
    console.log(d[0]);
  }
  r.disconnect();
}
main();
`},
	} {
		runProgram(t, b, port)
	}
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

// The listener speaks TLS and Unix sockets, has the authentication and the resource limits of the others,
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
	s := startRESP(t, "rules: []", func(c *config.Config) { c.Resources.Connections = 8 })
	address := strings.TrimPrefix(s.resp(t), "redis://")
	for range 20 {
		connect(t, address)
	}
	if got := rawPing(t, connect(t, address)); got != "+PONG" {
		t.Errorf("got %s", got)
	}
}

// At the connection limit, connections of unauthenticated clients are closed before those of
// authenticated ones, whatever they send.
func TestRESPUnauthenticatedClientsAreClosedFirst(t *testing.T) {
	t.Parallel()
	const token, most = "weir_secretsecretsecret", 8
	s := startRESP(t, "rules: []", func(c *config.Config) { c.Resources.Connections, c.Access.Token = most, token })
	address := strings.TrimPrefix(s.resp(t), "redis://")
	open := func(text, want string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c := connect(t, address)
		_ = c.SetDeadline(time.Now().Add(patience))
		r := bufio.NewReader(c)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(want) {
			if got, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(got, strings.TrimSpace(line)) {
				t.Fatalf("got %q %v, want %s", got, err, line)
			}
		}
		return c, r
	}
	client, replies := open("AUTH "+token+"\r\nPING\r\n", "+OK\n+PONG\n")
	for range 5 * most {
		open("PING\r\n", "-NOAUTH\n")
	}
	if _, err := io.WriteString(client, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := replies.ReadString('\n'); got != "+PONG\r\n" {
		t.Errorf("got %q %v, want the client served", got, err)
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

// A certificate that the tokens file does not name takes no memory of large commands: that of each command counts for its
// caller, before the command is complete.
func TestRESPUnknownCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ca.server(t)
	for _, name := range []string{"shop", "guest"} {
		ca.sign(t, name, &x509.Certificate{DNSNames: []string{name + ".example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, newKey(t))
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "shop cert:shop.example scopes=decide\n")
	s := startRESP(t, "rules: []", func(c *config.Config) {
		c.RESPListen = "rediss://127.0.0.1:0"
		c.Access.TLSCert, c.Access.TLSKey, c.Access.TLSClientCA = ca.path("server.pem"), ca.path("server.key"), ca.path("ca.pem")
		c.Access.Tokens = tokens
	})
	url := s.resp(t)
	argument := "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n"
	begin := "*22\r\n$10\r\nWEIR.CHECK\r\n" + strings.Repeat(argument, 20)
	for cert, want := range map[string]string{"shop": "-ERR ", "guest": "-NOAUTH "} {
		c, err := tls.Dial("tcp", url[strings.LastIndex(url, "/")+1:], ca.via(t, cert, false).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		if cert == "shop" {
			if _, err := io.WriteString(c, argument); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); string(got) != want {
			t.Errorf("%s: got %q and %v, want %q", cert, got, err, want)
		}
	}
}
