package main

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

const (
	alertsFile    = "../../deploy/prometheus/alerts.yaml"
	alertTests    = "../../deploy/prometheus/alerts_test.yaml"
	dashboardFile = "../../deploy/grafana/weir.json"
)

// alert is a rule of alertsFile.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// panel is a part of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	src := readFile(t, alertsFile)
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(src), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func readPanels(t *testing.T) []panel {
	t.Helper()
	src := readFile(t, dashboardFile)
	var file struct{ Panels []panel }
	if err := json.Unmarshal([]byte(src), &file); err != nil {
		t.Fatal(err)
	}
	return file.Panels
}

var (
	tableRow  = regexp.MustCompile("(?m)^\\| `(weir_\\w+)(?:\\{([^}]*)\\})?` \\|")
	selected  = regexp.MustCompile(`\b(weir_\w+|up|process_\w+)\b(?:\{([^}]*)\})?`)
	matcher   = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouped   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	legend    = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
	alertRow  = regexp.MustCompile("(?m)^\\| `(Weir\\w+)` \\|")
	processed = []string{"process_cpu_seconds_total", "process_resident_memory_bytes"}
)

// metricLabels returns the labels of each metric in docs/reference/metrics.md. A test of
// internal/metrics compares that table with the program.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	page := readFile(t, "../../docs/reference/metrics.md")
	all := map[string][]string{"up": nil}
	for _, name := range processed {
		all[name] = nil
	}
	for _, row := range tableRow.FindAllStringSubmatch(page, -1) {
		all[row[1]] = strings.Split(row[2], ",")
	}
	all["weir_decision_duration_seconds_bucket"] = []string{"le"}
	delete(all, "weir_decision_duration_seconds") // a histogram has no series of this name
	return all
}

// checkExpression reports the metrics and labels in expr, and the labels in texts
// about its result, that do not exist.
func checkExpression(t *testing.T, where string, metrics map[string][]string, expr string, texts ...string) {
	t.Helper()
	labels := []string{"job", "instance"}
	found := selected.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: got no metric in %s", where, expr)
	}
	for _, m := range found {
		its, ok := metrics[m[1]]
		if !ok {
			t.Errorf("%s: the metric %s does not exist", where, m[1])
		}
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(append([]string{"job", "instance"}, its...), label[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], label[1])
			}
		}
		labels = append(labels, its...)
	}
	left := labels
	for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
		left = nil // the labels of the result
		for label := range strings.SplitSeq(by[1], ",") {
			label = strings.TrimSpace(label)
			if !slices.Contains(labels, label) {
				t.Errorf("%s: no metric in %s has the label %s", where, expr, label)
			}
			left = append(left, label)
		}
	}
	for _, text := range texts {
		for _, label := range legend.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(left, label[1]) {
				t.Errorf("%s: %q names the label %s, which the result does not have", where, text, label[1])
			}
		}
	}
}

// TestAlerts checks that the alerts and the dashboard use metrics and labels that
// exist, and that the page describes every alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	metrics := metricLabels(t)
	var names []string
	for _, a := range readAlerts(t) {
		names = append(names, a.Alert)
		checkExpression(t, a.Alert, metrics, a.Expr, a.Annotations["summary"])
		if s := a.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
			t.Errorf("%s: got severity %q", a.Alert, s)
		}
	}
	page := readFile(t, "../../docs/reference/metrics.md")
	var told []string
	for _, row := range alertRow.FindAllStringSubmatch(page, -1) {
		told = append(told, row[1])
	}
	if !slices.Equal(told, names) {
		t.Errorf("the page describes the alerts\n%v\nwant\n%v", told, names)
	}
	queries := 0
	for _, p := range readPanels(t) {
		for _, q := range p.Targets {
			queries++
			checkExpression(t, p.Title, metrics, q.Expr, q.LegendFormat)
		}
	}
	if len(names) == 0 || queries == 0 {
		t.Errorf("got %d alerts, %d queries", len(names), queries)
	}
}

// TestAlertRules lets promtool check the alerts and run their tests. Each alert has
// one in which it fires.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := needtest.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertTests}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	src := readFile(t, alertTests)
	for _, a := range readAlerts(t) {
		if !strings.Contains(src, "alertname: "+a.Alert+"\n") || !strings.Contains(src, "{alertname: "+a.Alert+",") {
			t.Errorf("the tests lack a case in which %s fires, or one in which it does not", a.Alert)
		}
	}
}
