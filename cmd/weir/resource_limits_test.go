package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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

// Floods of batches end under 300 MiB, every one is answered or refused, and what
// was refused was not counted.
func TestBatchFloods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		rules           int
		requests, bytes int // of one batch
		status          map[int]bool
	}{
		{"long keys and fifty rules", 50, 900, 1000, map[int]bool{413: true, 503: true}},
		{"two thousand rules", 2000, 1000, 1, map[int]bool{413: true, 503: true}},
		{"answers of seven megabytes", 50, 900, 10, map[int]bool{200: true, 503: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, "", rulesPerUser(tc.rules))
			body := batchOf(tc.requests, tc.bytes)
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[int]int{}
			for range 40 {
				wg.Go(func() {
					status, wait, err := send(p.api+"/v1/batch", body)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("got no answer: %v", err)
					}
					if status == 503 && wait != "1" {
						t.Errorf("got 503 and Retry-After %q, want 1", wait)
					}
					got[status]++
				})
			}
			wg.Wait()
			for status := range got {
				if !tc.status[status] {
					t.Errorf("got answers %v, want only %v", got, tc.status)
				}
			}
			resp, err := http.Get(fmt.Sprintf("%s/v1/usage?rule=r0&user=%0*d", p.api, tc.bytes, 7))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if want := fmt.Sprintf(`"used":%d,`, got[200]); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("got %s %v, want %s: what was answered is counted, and nothing else", text, err, want)
			}
			const most = memoryFactor * 300 << 20
			if peak := p.peak(t); peak > most {
				t.Errorf("got %d MiB, want at most %d", peak>>20, most>>20)
			} else {
				t.Logf("answers %v, peak %d MiB", got, peak>>20)
			}
		})
	}
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
	take := func() string {
		resp, err := http.Post(p.api+"/v1/take", "application/json", strings.NewReader(`{"attributes":{"user":"victim"}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 4 {
		if got := take(); !strings.Contains(got, `"allowed":true`) {
			t.Fatalf("got %s", got)
		}
	}
	metric := func(name string) (value float64) {
		resp, err := http.Get(p.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("got no metric %s", name)
		}
		if value, err = strconv.ParseFloat(m[1], 64); err != nil {
			t.Fatal(err)
		}
		return value
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
		full = metric("weir_store_full_total")
	}
	if bytes, most := metric("weir_store_memory_bytes"), metric("weir_store_memory_limit_bytes"); most != 16<<20 || bytes > most {
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
		began := time.Now()
		status, _, err := send(url, body)
		if err != nil || status != 200 {
			t.Errorf("%s: got %d %v, want an answer", url, status, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", url, took)
		}
	}
}
