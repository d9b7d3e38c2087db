package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

// collector receives the events of a webhook, and answers 503 while it is down.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	down bool           // guarded by mu
	ids  map[string]int // how often each event came; guarded by mu
	bad  int            // guarded by mu

	order map[string][]string // the kinds of events of each key, each event once; guarded by mu
}

const webhookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func newCollector(t *testing.T) (c *collector, file string) {
	t.Helper()
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_"))
	c = &collector{ids: map[string]int{}, order: map[string][]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		m := hmac.New(sha256.New, key)
		fmt.Fprintf(m, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
		var e struct {
			ID, Type string
			Data     struct{ Key string }
		}
		if json.Unmarshal(body, &e) != nil || e.ID != r.Header.Get("webhook-id") ||
			r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)) {
			c.bad++
		}
		if c.ids[e.ID]++; c.ids[e.ID] == 1 {
			c.order[e.Data.Key] = append(c.order[e.Data.Key], e.Type)
		}
	}))
	t.Cleanup(c.Close)
	dir := t.TempDir()
	file = filepath.Join(dir, "webhooks.yaml")
	for name, text := range map[string]string{
		"secret":        webhookSecret + "\n",
		"webhooks.yaml": fmt.Sprintf("webhooks:\n  - name: test\n    url: %s\n    secret_file: secret\n    events: [near, denied]\n", c.URL),
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return c, file
}

func (c *collector) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *collector) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids)
}

// waiting returns how many events the process shows that wait for a webhook, or -1.
func (p *process) waiting(webhook string) int {
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	n := -1
	if _, after, ok := strings.Cut(string(text), fmt.Sprintf("\nweir_webhook_waiting{webhook=%q} ", webhook)); ok {
		_, _ = fmt.Sscan(after, &n)
	}
	return n
}

// Events that wait for a webhook survive a kill -9 of the instance that reported them: the next process on the
// data directory, or another instance on the store, delivers them, under the same ids and in order.
func TestEventsSurviveKill(t *testing.T) {
	t.Parallel()
	const rules = "rules:\n  - name: posts\n    per: [user]\n    limit: 10\n    window: 1h\n"
	const keys = 20
	for _, place := range []string{"data", "redis", "postgres"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			c, file := newCollector(t)
			args := []string{"--webhooks", file}
			switch place {
			case "data":
				args = append(args, "--data", t.TempDir())
			case "redis":
				args = append(args, "--store", "redis://"+redistest.Server(t).Addr()+"?timeout=30s")
			case "postgres":
				args = append(args, "--store", "'"+pgtest.Server(t).URL("timeout=30s")+"'")
			}
			c.set(true)
			one := startProcess(t, "", rules, args...)
			if place != "data" {
				startProcess(t, "", rules, args...)
			}
			redistest.Eventually(t, "the service is ready", func() bool {
				resp, err := http.Get(one.api + "/readyz")
				if err == nil {
					_ = resp.Body.Close()
				}
				return err == nil && resp.StatusCode == http.StatusOK
			})
			for n := range 11 * keys {
				body := fmt.Sprintf(`{"attributes":{"user":"k%d"}}`, n%keys)
				one.call(t, http.MethodPost, "/v1/take", body)
			}
			redistest.Eventually(t, "all events are written", func() bool { return one.waiting("test") == 2*keys })
			one.kill()
			c.set(false)
			if place == "data" {
				startProcess(t, "", rules, args...)
			}
			redistest.Eventually(t, "all events arrive", func() bool { return c.distinct() >= 2*keys })
			c.mu.Lock()
			defer c.mu.Unlock()
			if want := []string{"weir.near", "weir.denied"}; c.bad > 0 || len(c.ids) != 2*keys || !slices.Equal(c.order["k0"], want) {
				t.Errorf("got %d bad calls, %d events, %q for a key; want %d and %q", c.bad, len(c.ids), c.order["k0"], 2*keys, want)
			}
		})
	}
}
