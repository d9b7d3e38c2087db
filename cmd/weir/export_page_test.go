package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/internal/pgtest"
)

// TestExportPage follows docs/guides/export.md: it runs a service with its rules, puts the usage
// of the current period into a table in PostgreSQL, twice, and sends it to a server in the place of OpenMeter.
func TestExportPage(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"psql", "jq", "curl"} {
		needtest.Program(t, program)
	}
	src := readFile(t, "../../docs/guides/export.md")
	blocks := map[string][]string{}
	for _, m := range fence.FindAllStringSubmatch(src, -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	if len(blocks["yaml"]) != 1 || len(blocks["sh"]) != 2 {
		t.Fatalf("got %d rules and %d recipes, want 1 and 2", len(blocks["yaml"]), len(blocks["sh"]))
	}
	var mu sync.Mutex
	var events []string
	meter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		events = append(events, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer meter.Close()

	db := pgtest.Server(t)
	p := startProcess(t, "", blocks["yaml"][0])
	dir := t.TempDir()
	run := func(script string) {
		t.Helper()
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "WEIR_ADDR="+p.api, "BILLING="+db.URL(), "OPENMETER="+meter.URL)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
	}
	// As a store may, the export has each key twice.
	sql := strings.Replace(blocks["sh"][0], " --period last > usage.ndjson", " > once; cat once once > usage.ndjson", 1)
	used := map[string]int{}
	for range 2 {
		for _, customer := range []string{"acme", `a"b\\c`, "é,\t", "nul�"} {
			sent := strings.ReplaceAll(fmt.Sprintf("%q", customer), "�", `\u0000`)
			_, text := p.post(t, "/v1/record", fmt.Sprintf(`{"attributes": {"customer": %s, "tokens": "%d"}}`, sent, 7+len(customer)))
			used[customer] += 7 + len(customer)
			if !strings.Contains(text, `"used":`) {
				t.Fatal(text)
			}
		}
		run(sql)
		for customer, n := range used {
			query := fmt.Sprintf("SELECT used::text FROM usage WHERE customer = '%s'", customer)
			if got := strings.TrimSpace(fmt.Sprint(db.Must(query))); !strings.Contains(got, fmt.Sprint(n)) {
				t.Errorf("%q: got %s used, want %d", customer, got, n)
			}
		}
	}
	run(blocks["sh"][1])
	mu.Lock()
	defer mu.Unlock()
	if len(events) != 2*len(used) {
		t.Errorf("got %d events, want %d", len(events), 2*len(used))
	}
	for _, e := range events {
		if !strings.HasPrefix(e, `/api/v1/events application/cloudevents+json {"specversion":"1.0","type":"tokens","source":"weir","id":`) ||
			strings.Contains(e, `"subject":"acme"`) && !strings.Contains(e, `"data":{"tokens":22}`) {
			t.Errorf("got event %s", e)
		}
	}
}
