package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/cmd/weir/internal/trial"
	"github.com/weirhq/weir/internal/redistest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == trial.Command { // as the program, which a trial starts again
		if err := trial.Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is the limit of every wait of these tests; none is expected to need
// it.
const patience = time.Minute

// service is the real service on free ports.
type service struct {
	api, admin string
	greeting   string
	logs       *journal
	cancel     func()
	ended      chan error
}

var addresses = regexp.MustCompile(`weir listens on (\S+), its admin on (\S+)`)

// start runs the service; the test's end stops it and checks that it ended
// well, unless the test did.
func start(t *testing.T, change func(*config.Config)) *service {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	s := &service{logs: newJournal(), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := server.Run(ctx, cfg, in, s.logs)
		in.CloseWithError(io.EOF)
		s.ended <- err
	}()
	r := bufio.NewReader(out)
	first, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("got no greeting but %v", <-s.ended)
	}
	m := addresses.FindStringSubmatch(first)
	if m == nil {
		t.Fatalf("got greeting %q, want addresses", first)
	}
	s.api, s.admin, s.greeting = m[1], m[2], first
	rest := make(chan string)
	go func() { b, _ := io.ReadAll(r); rest <- string(b) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.stop(); err != nil {
			t.Errorf("got %v from the service, want an orderly end", err)
		}
		<-rest
	})
	if cfg.Data != "" { // until the counters are loaded, calls get 503
		redistest.Eventually(t, "the counters are loaded", func() bool { return call(t, "GET", s.api+"/readyz", "").status == 200 })
	}
	return s
}

// stop ends the service and returns the result of Run, nil the second time.
func (s *service) stop() error {
	s.cancel()
	err := <-s.ended
	select {
	case s.ended <- nil:
	default:
	}
	return err
}

// answer is one answer's status and JSON.
type answer struct {
	status int
	text   string
	json   map[string]any
}

func call(t *testing.T, method, url, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, text: string(b)}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(b, &a.json); err != nil {
			t.Fatalf("%s: got %s, want JSON: %v", url, b, err)
		}
	}
	return a
}

// post takes for a user who posts.
func (s *service) post(t *testing.T, user string) (allowed bool, rule string) {
	t.Helper()
	a := call(t, "POST", s.api+"/v1/take", `{"attributes":{"action":"post","user":"`+user+`"}}`)
	if a.status != 200 {
		t.Fatalf("got %d %s, want 200", a.status, a.text)
	}
	rule, _ = a.json["rule"].(string)
	return a.json["allowed"].(bool), rule
}

// journal collects logs, and waits for lines.
type journal struct {
	mu    sync.Mutex
	text  bytes.Buffer  // guarded by mu
	grown chan struct{} // closed and made anew at each line; guarded by mu
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.grown)
	j.grown = make(chan struct{})
	return j.text.Write(p)
}

// count returns how often part was logged.
func (j *journal) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), part)
}

// await waits until part was logged n times.
func (j *journal) await(t *testing.T, n int, part string) {
	t.Helper()
	late := time.After(patience)
	for {
		j.mu.Lock()
		text, grown := j.text.String(), j.grown
		j.mu.Unlock()
		if strings.Count(text, part) >= n {
			return
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("got logs\n%s\nwant %q %d times", text, part, n)
		}
	}
}

// write writes a file as editors do: first another file, which then replaces it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// rulesFile returns a new file of rules.
func rulesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, text)
	return path
}

// connect connects to an address, until the test ends.
func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// limited serves h with [server.ServeLimited] until the test ends. sheds is how many connections it has closed.
func limited(t *testing.T, most int, h http.HandlerFunc) (addr string, sheds *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sheds = new(atomic.Int64)
	s := server.ServeLimited(l, most, 0, func() { sheds.Add(1) }, h)
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String(), sheds
}

// askOn makes a request on a connection, and reads the answer.
func askOn(t *testing.T, c net.Conn) {
	t.Helper()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("got %v, want an answer", err)
	}
	resp.Body.Close()
}
