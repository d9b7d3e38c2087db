package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// rulesPerUser returns n limits for each user.
func rulesPerUser(n int) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%d, per: [user], limit: 1000, window: 1h}\n", i)
	}
	return b.String()
}

// send posts body and returns the status, and the wait that the answer asks for.
func send(url, body string) (status int, wait string, err error) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), err
}

// batchOf returns a batch of n takes, of users with names of a length.
func batchOf(n, length int) string {
	var b strings.Builder
	b.WriteString(`{"requests":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"attributes":{"user":"%0*d"}}`, length, i)
	}
	b.WriteString("]}")
	return b.String()
}

// A flood of new keys neither makes the counters grow past --memory nor changes what
// is counted for others.
func TestKeyFlood(t *testing.T) {
	t.Parallel()
	const rules = `rules:
  - {name: five, per: [user], limit: 5, window: 1h}
  - {name: views, per: [user], window: 24h}
  - {name: more-views, per: [user], window: 24h}
`
	p := startProcess(t, "", rules, "--memory 16MiB")
	take := func() string { return p.call(t, "POST", "/v1/take", `{"attributes":{"user":"victim"}}`) }
	for range 4 {
		if got := take(); !strings.Contains(got, `"allowed":true`) {
			t.Fatalf("got %s", got)
		}
	}
	var wg sync.WaitGroup
	for round, full := 0, 0.0; full < 20_000; round++ {
		if round == 40 {
			t.Fatal("the flood did not fill the memory")
		}
		for i := range 4 {
			wg.Go(func() {
				for j := range 5 {
					body := strings.ReplaceAll(batchOf(1000, 6), `"user":"`, fmt.Sprintf(`"user":"%d/%d/%d/`, round, i, j))
					if status, _, err := send(p.api+"/v1/batch", body); err != nil || status != 200 && status != 503 {
						t.Errorf("got %d %v", status, err)
					}
				}
			})
		}
		wg.Wait()
		full = p.metric(t, "weir_store_full_total")
	}
	if bytes, most := p.metric(t, "weir_store_memory_bytes"), p.metric(t, "weir_store_memory_limit_bytes"); most != 16<<20 || bytes > most {
		t.Errorf("got %v bytes, want at most %v, which --memory says", bytes, most)
	}
	for _, want := range []string{`"allowed":true`, `"allowed":false`} {
		if got := take(); !strings.Contains(got, want) || strings.Contains(got, "degraded") {
			t.Errorf("got %s, want the count from before the flood: %s", got, want)
		}
	}
	if n := strings.Count(p.logs.String(), "no room for new keys"); n != 1 {
		t.Errorf("got %d lines about the memory, want 1\n%s", n, p.logs.String())
	}
}

// Idle connections, and those that send slowly, make room for new ones, with as
// many descriptors as there are. The admin address has connections of its own.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "ulimit -n 200;", rulesPerUser(1))
	addr := strings.TrimPrefix(p.api, "http://")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	const body = `{"attributes":{"user":"42"}}`
	for i := range 600 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		switch i % 3 { // nothing; half a head; half a body
		case 1:
			fmt.Fprint(c, "POST /v1/take HTTP/1.1\r\nHost: x\r\nX-Slow")
		case 2:
			fmt.Fprint(c, "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		}
		if i%50 == 0 {
			if status, _, err := send(p.api+"/v1/take", body); err != nil || status != 200 {
				t.Fatalf("after %d connections: got %d %v, want an answer", i+1, status, err)
			}
		}
	}
	if !strings.Contains(p.logs.String(), "fewer connections than --max-connections") {
		t.Errorf("got no line about descriptors in\n%s", p.logs.String())
	}
	for _, url := range []string{p.api + "/v1/take", p.admin + "/healthz"} {
		clock := redistest.Clock(t)
		status, _, err := send(url, body)
		if err != nil || status != 200 {
			t.Errorf("%s: got %d %v, want an answer", url, status, err)
		}
		if took := clock(); took > 5*time.Second {
			t.Errorf("%s: took %v", url, took)
		}
	}
}
