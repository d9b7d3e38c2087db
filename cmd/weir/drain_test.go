package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/internal/needtest"
	"github.com/weirhq/weir/internal/redistest"
)

// TestDrainUnderLoad ends a real process with SIGTERM while clients take as fast as
// they can, over TLS, by each front end: HTTP/1.1, HTTP/2, koala's calls and gRPC.
// Each take that was counted was answered: Redis has counted as many as the clients
// have answers.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "openssl")
	dir, node := t.TempDir(), redistest.Server(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
		"-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(pem)

	const rules = "rules: [{name: hits, per: [door], limit: 1000000000, window: {fixed: 1h}}]"
	store := "--store redis://" + node.Addr() + " --store-timeout 20s --nodes 1"
	p := startProcess(t, "", rules, store, "--listen https://127.0.0.1:0 --koala-listen https://127.0.0.1:0 --grpc-listen https://127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key)
	address := func(of string) string {
		pattern := regexp.MustCompile(of + ` https://(\S+)`)
		redistest.Eventually(t, "the address is printed", func() bool { return pattern.MatchString(p.out.String()) })
		return pattern.FindStringSubmatch(p.out.String())[1]
	}
	koala, remote := address("koala's calls:"), address("gRPC:")

	http1 := &http.Transport{TLSClientConfig: trust.Clone()}
	http2 := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
	conn, err := grpc.NewClient(remote, grpc.WithTransportCredentials(credentials.NewTLS(trust.Clone())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	post := func(via *http.Transport, door, want string) func() error {
		return func() error {
			return visitOver(via, http.MethodPost, p.api+"/v1/take", `{"attributes":{"door":"`+door+`"}}`, want)
		}
	}
	doors := map[string]func() error{
		"http1": post(http1, "http1", "HTTP/1.1"),
		"http2": post(http2, "http2", "HTTP/2.0"),
		"koala": func() error {
			return visitOver(http1, http.MethodGet, "https://"+koala+"/rule/browse?door=koala&_writeThrough=yes", "", "HTTP/1.1")
		},
		"grpc": func() error {
			_, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(context.Background(), &rls.RateLimitRequest{
				Domain:      "x",
				Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "door", Value: "grpc"}}}},
			})
			return err
		},
	}
	answers := map[string]*atomic.Int64{}
	last := map[string]error{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for door, take := range doors {
		count := new(atomic.Int64)
		answers[door] = count
		for range 4 {
			clients.Go(func() {
				for {
					if err := take(); err != nil {
						mu.Lock()
						last[door] = err
						mu.Unlock()
						return
					}
					count.Add(1)
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
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the service ends with %v\n%s", err, p.logs.String())
	}
	p.stopped = true
	clients.Wait()
	http1.CloseIdleConnections()
	http2.CloseIdleConnections()

	after := startProcess(t, "", rules, store)
	for door, count := range answers {
		resp, err := http.Get(after.api + "/v1/usage?rule=hits&door=" + door)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := fmt.Sprintf(`"used":%d,`, count.Load()); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %d answers, and counted %s; the last error was %v", door, count.Load(), text, last[door])
		}
	}
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
