package metrics_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/cmd/weir/internal/metrics"
)

// descriptions matches what prometheus.Desc has as text.
var description = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)

// names returns NAME{LABEL,…} of each metric that a service can have: those of all
// functions of Metrics that are called Watch….
func names(t *testing.T) map[string]bool {
	t.Helper()
	m := metrics.New(metrics.Config{})
	value := reflect.ValueOf(m)
	for i := range value.NumMethod() {
		method := value.Type().Method(i)
		if !strings.HasPrefix(method.Name, "Watch") {
			continue
		}
		var args []reflect.Value
		for n := range method.Type.NumIn() - 1 {
			kind := method.Type.In(n + 1)
			args = append(args, reflect.MakeFunc(kind, func([]reflect.Value) (out []reflect.Value) {
				for o := range kind.NumOut() {
					out = append(out, reflect.Zero(kind.Out(o)))
				}
				return out
			}))
		}
		value.Method(i).Call(args)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() { defer close(descriptions); m.Gatherer().(prometheus.Collector).Describe(descriptions) }()
	found := map[string]bool{}
	for d := range descriptions {
		part := description.FindStringSubmatch(d.String())
		if part == nil {
			t.Fatalf("got description %s", d)
		}
		if name := part[1]; strings.HasPrefix(name, "weir_") {
			if part[2] != "" {
				name += "{" + part[2] + "}"
			}
			found[name] = true
		}
	}
	return found
}

// docs/reference/metrics.md has all metrics, with their labels, and no others.
func TestTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Metrics\n")
	if !ok {
		t.Fatal("docs/reference/metrics.md has no section called Metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(weir_[^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		if told[row[1]] {
			t.Errorf("the page has %s twice", row[1])
		}
		told[row[1]] = true
	}
	there := names(t)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !told[name] {
			t.Errorf("docs/reference/metrics.md lacks %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !there[name] {
			t.Errorf("docs/reference/metrics.md has %s, which does not exist", name)
		}
	}
}
