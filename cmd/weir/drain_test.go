package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir"
	grpcclient "github.com/weirhq/weir/client"
	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/internal/redistest"
)

// TestDrainUnderLoad ends a real process with SIGTERM while clients take as fast as
// they can, by each front end, with TLS and without: HTTP/1.1, HTTP/2, koala's calls,
// weir.v1 over gRPC by calls and by a stream, Envoy's protocol, and the Redis protocol
// with one command at a time and with ten. Each take that was counted was answered:
// Redis has counted as many as the clients have answers.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("TLS", func(t *testing.T) { t.Parallel(); testDrain(t, true) })
	t.Run("plain", func(t *testing.T) { t.Parallel(); testDrain(t, false) })
}

func testDrain(t *testing.T, secret bool) {
	node := redistest.Server(t)
	const rules = "rules: [{name: hits, per: [listener], limit: 1000000000, window: {fixed: 1h}}]"
	store := "--store redis://" + node.Addr() + " --store-timeout 20s --nodes 1"
	listen := "--listen h2c://127.0.0.1:0 --koala-listen 127.0.0.1:0 --grpc-listen h2c://127.0.0.1:0 --resp-listen 127.0.0.1:0"
	trust := new(tls.Config)
	if secret {
		var cert, key string
		cert, key, trust.RootCAs = selfSigned(t)
		listen = "--listen https://127.0.0.1:0 --koala-listen https://127.0.0.1:0 --grpc-listen https://127.0.0.1:0 --resp-listen rediss://127.0.0.1:0" +
			" --tls-cert " + cert + " --tls-key " + key
	}
	p := startProcess(t, "", rules, store, listen)
	address := func(of string) string {
		pattern := regexp.MustCompile(`(?m)^` + of + ` (?:[a-z0-9]+://)?(\S+)$`)
		redistest.Eventually(t, "the address is printed", func() bool { return pattern.MatchString(p.out.String()) })
		return pattern.FindStringSubmatch(p.out.String())[1]
	}
	koala, remote, redis := address("koala's calls:"), address("gRPC:"), address("Redis protocol:")

	http1 := &http.Transport{TLSClientConfig: trust.Clone()}
	http2 := &http.Transport{TLSClientConfig: trust.Clone(), Protocols: new(http.Protocols)}
	http2.Protocols.SetHTTP2(secret)
	http2.Protocols.SetUnencryptedHTTP2(!secret)
	scheme, creds := "http://", insecure.NewCredentials()
	if secret {
		scheme, creds = "https://", credentials.NewTLS(trust.Clone())
	}
	conn, err := grpc.NewClient(remote, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Each client makes calls with its own function, which returns the number of
	// answers.
	post := func(via *http.Transport, listener, want string) func() func() (int64, error) {
		return shared(func() error {
			return visitOver(via, http.MethodPost, p.api+"/v1/take", `{"attributes":{"listener":"`+listener+`"}}`, want)
		})
	}
	commands := func(listener string, n int) func() func() (int64, error) {
		return func() func() (int64, error) {
			dial := net.Dial
			if secret {
				dial = func(network, addr string) (net.Conn, error) { return tls.Dial(network, addr, trust) }
			}
			c, err := dial("tcp", redis)
			if err != nil {
				return func() (int64, error) { return 0, err }
			}
			t.Cleanup(func() { _ = c.Close() })
			r := bufio.NewReader(c)
			return func() (int64, error) { return takeRESP(c, r, listener, n) }
		}
	}
	v1 := func(listener string, streams int) func() func() (int64, error) {
		options := []grpcclient.Option{grpcclient.WithStreams(streams), grpcclient.WithTimeout(time.Minute)}
		if secret {
			options = append(options, grpcclient.WithTLS(trust.Clone()))
		}
		c, err := grpcclient.New(remote, options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return shared(func() error {
			_, err := c.Take(context.Background(), weir.Request{Attributes: weir.Attributes("listener", listener)})
			if err != nil && !grpcclient.Uncounted(err) {
				t.Errorf("%s: got %v, want an answer, or that nothing was counted", listener, err)
			}
			return err
		})
	}
	listeners := map[string]func() func() (int64, error){
		"v1":     v1("v1", 0),
		"stream": v1("stream", 1),
		"http1":  post(http1, "http1", "HTTP/1.1"),
		"http2":  post(http2, "http2", "HTTP/2.0"),
		"koala": shared(func() error {
			return visitOver(http1, http.MethodGet, scheme+koala+"/rule/browse?listener=koala&_writeThrough=yes", "", "HTTP/1.1")
		}),
		"envoy": shared(func() error {
			_, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(context.Background(), &rls.RateLimitRequest{
				Domain:      "x",
				Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "listener", Value: "envoy"}}}},
			})
			return err
		}),
		"resp":     commands("resp", 1),
		"resp-ten": commands("resp-ten", 10),
	}
	answers := map[string]*atomic.Int64{}
	last := map[string]error{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for listener, client := range listeners {
		count := new(atomic.Int64)
		answers[listener] = count
		for range 4 {
			take := client()
			clients.Go(func() {
				for {
					n, err := take()
					count.Add(n)
					if err != nil {
						mu.Lock()
						last[listener] = err
						mu.Unlock()
						return
					}
				}
			})
		}
	}
	redistest.Eventually(t, "each front end answers", func() bool {
		for _, count := range answers {
			if count.Load() < 50 {
				return false
			}
		}
		return true
	})
	p.end(t)
	clients.Wait()
	http1.CloseIdleConnections()
	http2.CloseIdleConnections()

	after := startProcess(t, "", rules, store)
	for listener, count := range answers {
		resp, err := http.Get(after.api + "/v1/usage?rule=hits&listener=" + listener)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := fmt.Sprintf(`"used":%d,`, count.Load()); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %d answers, and counted %s; the last error was %v", listener, count.Load(), text, last[listener])
		}
	}
}

// shared returns what makes the function of a client: all clients share call.
func shared(call func() error) func() func() (int64, error) {
	return func() func() (int64, error) {
		return func() (int64, error) {
			if err := call(); err != nil {
				return 0, err
			}
			return 1, nil
		}
	}
}

// takeRESP sends n takes to a service at once, in the Redis protocol, and returns the number of
// answers.
func takeRESP(c net.Conn, r *bufio.Reader, listener string, n int) (answers int64, err error) {
	command := fmt.Sprintf("*3\r\n$9\r\nWEIR.TAKE\r\n$8\r\nlistener\r\n$%d\r\n%s\r\n", len(listener), listener)
	if _, err := io.WriteString(c, strings.Repeat(command, n)); err != nil {
		// The service may have decided some of them before it closed the connection.
		defer func(sent error) { err = sent }(err)
	}
	const want = "*5\r\n:1\r\n$5\r\nallow\r\n$0\r\n\r\n$1\r\n0\r\n$0\r\n\r\n"
	got := make([]byte, len(want))
	for range n {
		if _, err := io.ReadFull(r, got); err != nil {
			return answers, err
		}
		if string(got) != want {
			return answers, fmt.Errorf("got %q", got)
		}
		answers++
	}
	return answers, nil
}

// selfSigned makes a certificate for 127.0.0.1, and returns its files, and the pool
// that trusts it.
func selfSigned(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	needtest.Program(t, "openssl")
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
		"-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pem := readFile(t, cert)
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM([]byte(pem))
	return cert, key, trust
}

// visitOver makes a call, whose answer must be complete, and of a protocol.
func visitOver(via *http.Transport, method, url, body, protocol string) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || resp.Proto != protocol {
		return fmt.Errorf("got %s %s", resp.Proto, resp.Status)
	}
	return nil
}

// A service that waits for its store at the start stays alive when it is told to reload its rules.
func TestReloadDuringStart(t *testing.T) {
	t.Parallel()
	store, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, rules, "rules: [{name: hits, per: [user], limit: 5, window: 1h}]")
	p := &process{Cmd: exec.Command("weir", "serve", "--rules", rules, "--store", "redis://"+store.Addr().String(),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")}
	p.Stderr = &p.logs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := store.Accept() // and no answer
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	redistest.Eventually(t, "the rules are loaded", func() bool {
		return len(ended) > 0 || strings.Contains(p.logs.String(), `msg="rules loaded" asked=SIGHUP`)
	})
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("the service ends with %v\n%s", err, p.logs.String())
	}
}
