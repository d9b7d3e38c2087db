package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/internal/redistest"
)

// promServer is a Prometheus server that scrapes a service.
type promServer struct {
	t   *testing.T
	url string
}

// startPrometheus starts the real program, with the alerts, on a free port.
func startPrometheus(t *testing.T, admin string) promServer {
	t.Helper()
	program := needtest.Program(t, "prometheus")
	alerts, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%s]\nscrape_configs:\n  - job_name: weir\n    static_configs: [{targets: [%q]}]\n",
		alerts, strings.TrimPrefix(admin, "http://"))
	writeFile(t, file, text)
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	var logs lockedBuffer
	cmd.Stdout, cmd.Stderr = &logs, &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("prometheus ends with %v\n%s", err, logs.String())
		}
	})
	listening := regexp.MustCompile(`msg="Listening on" address=(127\.0\.0\.1:[1-9]\d*)`)
	var address string
	redistest.Eventually(t, "prometheus listens", func() bool {
		if m := listening.FindStringSubmatch(logs.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	redistest.Eventually(t, "prometheus is ready", func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return promServer{t: t, url: "http://" + address}
}

// get decodes the data of a call of the API, and returns its error.
func (p promServer) get(path string, data any) error {
	resp, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// query returns how many series an expression has.
func (p promServer) query(expr string) int {
	p.t.Helper()
	var data struct{ Result []json.RawMessage }
	if err := p.get("/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		p.t.Errorf("%s: %v", expr, err)
	}
	return len(data.Result)
}

// TestPrometheus lets a real Prometheus scrape a service and evaluate every query
// of the alerts and of the dashboard.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "prometheus")
	rules := "rules:\n  - name: posts\n    per: [user]\n    limit: 10\n    window: 1m\n"
	service := startProcess(t, "", rules)
	p := startPrometheus(t, service.admin)
	take := func() {
		resp, err := http.Post(service.api+"/v1/take", "application/json", bytes.NewReader([]byte(`{"attributes": {"user": "42"}}`)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	redistest.Eventually(t, "there is a rate of decisions", func() bool {
		take()
		return p.query(`sum(rate(weir_decisions_total{rule="posts"}[1m])) > 0`) == 1
	})
	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	redistest.Eventually(t, "Prometheus evaluates all alerts", func() bool {
		if err := p.get("/api/v1/rules", &loaded); err != nil {
			t.Fatal(err)
		}
		for _, g := range loaded.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("%s: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return false
				}
			}
		}
		return len(loaded.Groups) > 0
	})
	if got, want := len(loaded.Groups[0].Rules), len(readAlerts(t)); got != want {
		t.Errorf("Prometheus has %d alerts, want %d", got, want)
	}
	// On a busy machine a decision may be slow, and a scrape late: then the service is down until the next one.
	for _, a := range readAlerts(t) {
		if !strings.HasPrefix(a.Alert, "WeirRule") && a.Alert != "WeirSlow" {
			redistest.Eventually(t, a.Alert+" does not fire for a service that is well", func() bool { return p.query(a.Expr) == 0 })
		}
	}
	variables := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "1m")
	// The panels that have data for a service in memory without authentication.
	filled := []string{
		"Decisions by outcome", "Time of a decision", "Over the limit", "Near the limit", "Rules in force",
		"Memory of counters", "Keys in memory", "Processor", "Memory", "Versions",
	}
	for _, panel := range readPanels(t) {
		shows := func() (shows bool) {
			for _, q := range panel.Targets {
				shows = p.query(variables.Replace(q.Expr)) > 0 || shows
			}
			return shows
		}
		if at := slices.Index(filled, panel.Title); at >= 0 {
			redistest.Eventually(t, panel.Title+" shows something", shows)
			filled = slices.Delete(filled, at, at+1)
		} else {
			shows() // every expression is valid
		}
	}
	if len(filled) > 0 {
		t.Errorf("got no panels %q", filled)
	}
}
