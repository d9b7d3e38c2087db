package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
)

const exportedRules = `
rules:
  - name: tokens
    per: [team, model]
    sum: tokens
    limit: 1_000_000
    window: year
    hold: 2h
    export: true
`

// exportClient counts what a service has admitted, independently of it.
type exportClient struct {
	*rand.Rand
	*process
	t     *testing.T
	final map[[2]string]int64
	holds []exportHold
}

type exportHold struct {
	key     [2]string
	tokens  int64
	receipt string
}

// post makes a call about a key.
func (c *exportClient) post(verb, receipt string, key [2]string, tokens int64) (answer struct {
	Allowed bool
	Receipt string
	Usage   []struct{ Held *bool }
}) {
	c.t.Helper()
	body, _ := json.Marshal(map[string]any{
		"attributes": map[string]string{"team": key[0], "model": key[1], "tokens": fmt.Sprint(tokens)},
	})
	if receipt != "" {
		body = append([]byte(fmt.Sprintf(`{"receipt":%q,`, receipt)), body[1:]...)
	}
	text := c.call(c.t, http.MethodPost, "/v1/"+verb, string(body))
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		c.t.Fatalf("%s %s: got %s", verb, body, text)
	}
	return answer
}

// use takes, settles and cancels at random.
func (c *exportClient) use(calls int) {
	for range calls {
		key := [2]string{fmt.Sprint("team-", c.IntN(40)), []string{"small", "lar,ge"}[c.IntN(2)]}
		n := c.Int64N(1000)
		switch k := c.IntN(8); {
		case k == 0:
			c.post("record", "", key, n)
			c.final[key] += n
		case k < 5 || len(c.holds) == 0:
			if a := c.post("take", "", key, n); a.Allowed && n > 0 {
				c.holds = append(c.holds, exportHold{key, n, a.Receipt})
			}
		default:
			i := c.IntN(len(c.holds))
			h := c.holds[i]
			c.holds = append(c.holds[:i], c.holds[i+1:]...)
			if k == 7 {
				c.post("cancel", h.receipt, h.key, h.tokens)
				continue
			}
			c.post("settle", h.receipt, h.key, n)
			c.final[h.key] += n
		}
	}
}

// check compares an export with what c has counted.
func (c *exportClient) check(query string) {
	c.t.Helper()
	type line struct {
		Attributes map[string]string
		Used, Held int64
		Complete   *bool
	}
	type sum struct{ used, held int64 }
	got, want := map[[2]string]sum{}, map[[2]string]sum{}
	for key, n := range c.final {
		want[key] = sum{n, 0}
	}
	for _, h := range c.holds {
		w := want[h.key]
		w.held += h.tokens
		want[h.key] = w
	}
	maps.DeleteFunc(want, func(_ [2]string, s sum) bool { return s == sum{} })
	resp, err := http.Get(c.api + "/v1/export?rule=tokens" + query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("got %d %s, error %v", resp.StatusCode, text, err)
	}
	complete := false
	for l := range strings.Lines(string(text)) {
		var one line
		if err := json.Unmarshal([]byte(l), &one); err != nil {
			c.t.Fatalf("%s: %v", l, err)
		}
		if one.Complete != nil {
			complete = *one.Complete
			continue
		}
		key := [2]string{one.Attributes["team"], one.Attributes["model"]}
		if _, twice := got[key]; twice {
			c.t.Errorf("got key %v twice", key)
		}
		got[key] = sum{one.Used, one.Held}
	}
	if !complete || resp.Trailer.Get("Weir-Complete") != "true" {
		c.t.Errorf("the export is not complete: trailer %v", resp.Trailer)
	}
	if !maps.Equal(got, want) {
		c.t.Errorf("got %v\nwant %v", got, want)
	}
}

// Some proxies drop trailers. The last line of JSON says the same, and CSV has none.
func TestExportWithoutTrailer(t *testing.T) {
	t.Parallel()
	keys := strings.Repeat(`{"attributes":{"user":"{\"complete\":true,}"},"used":1}`+"\n", 2000)
	for text, want := range map[string]int{
		keys + `{"complete":true,"keys":2000,"unknown":0}` + "\n":              0,
		`{"complete":true,"keys":0,"unknown":0}` + "\n":                        0,
		keys + `{"complete":true,"keys":2000,"unknown":0`:                      1,
		keys + `{"complete":false,"keys":2000,"unknown":0,"after":"x"}` + "\n": 1,
		keys: 1,
		"":   1,
	} {
		for _, format := range []string{"ndjson", "csv"} {
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[string]string{"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}[format])
				_, _ = io.WriteString(w, text)
			}))
			var out, errs bytes.Buffer
			status := run([]string{"export", "tokens", "--format", format, "--addr", proxy.URL}, strings.NewReader(""), &out, &errs)
			proxy.Close()
			if format == "csv" {
				want = 1
			}
			if status != want || out.String() != text {
				t.Errorf("%s that ends in %q: got status %d and %s, want %d", format, text[max(0, len(text)-60):], status, &errs, want)
			}
		}
	}
}

// TestExportIsTheSum compares exports with an independent sum of what was admitted, held and
// settled, in each store, with a data directory also after kill -9.
func TestExportIsTheSum(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(*testing.T) []string{
		"memory":    func(*testing.T) []string { return nil },
		"directory": func(t *testing.T) []string { return []string{"--data", t.TempDir(), "--sync", "always"} },
		"redis": func(t *testing.T) []string {
			return []string{"--store", "redis://" + redistest.Server(t).Addr() + "?timeout=30s"}
		},
		"cluster": func(t *testing.T) []string {
			return []string{"--store", "redis+cluster://" + redistest.Cluster(t, 3, 0).Addrs() + "?timeout=30s"}
		},
		"postgres": func(t *testing.T) []string {
			return []string{"--store", "'" + pgtest.Server(t).URL("timeout=30s") + "'"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := args(t)
			start := func() *process {
				l := startProcess(t, "", exportedRules, given...)
				if name == "directory" {
					l.ready(t)
				}
				return l
			}
			l := start()
			c := &exportClient{Rand: rand.New(rand.NewPCG(1, 2)), t: t, process: l, final: map[[2]string]int64{}}
			for range 3 {
				c.use(300)
				c.check("")
			}
			if name != "memory" {
				l.kill()
				l = start()
				c.process = l
				c.check("")
				c.use(300)
				c.check("")
			}
		})
	}
}
