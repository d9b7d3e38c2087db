package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

// acceptsServe checks that weir accepts a command line of weir serve, but for the
// files that it names, which do not exist here.
func acceptsServe(t *testing.T, args []string) {
	t.Helper()
	dir := t.TempDir()
	args = append([]string(nil), args...)
	for i := range args {
		args[i] = strings.Replace(args[i], "/etc/weir/rules.yaml", filepath.Join(dir, "none.yaml"), 1)
		args[i] = strings.Replace(args[i], "/var/lib/weir", filepath.Join(dir, "data"), 1)
	}
	var out strings.Builder
	if code := run(args, strings.NewReader(""), &out, &out); code != exitError || !strings.Contains(out.String(), "none.yaml: no such file") {
		t.Errorf("weir %s: got %d %s, want that only the rules are missing", strings.Join(args, " "), code, out.String())
	}
}

// commandLines returns the lists in a document that begin with serve.
func commandLines(value any) (all [][]string) {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			all = append(all, commandLines(child)...)
		}
	case []any:
		if len(v) > 0 && v[0] == "serve" {
			var args []string
			for _, arg := range v {
				text, _ := arg.(string)
				args = append(args, text)
			}
			return [][]string{args}
		}
		for _, child := range v {
			all = append(all, commandLines(child)...)
		}
	}
	return all
}

// The manifests on the page about Kubernetes have a command line that weir accepts.
func TestKubernetesPage(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/guides/kubernetes.md")
	lines := 0
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[1] != "yaml" {
			continue
		}
		var document map[string]any
		if err := yaml.Unmarshal([]byte(m[2]), &document); err != nil {
			t.Fatal(err)
		}
		for _, args := range commandLines(document) {
			lines++
			// The token and the store are in the Secret.
			acceptsServe(t, append(args, "--insecure", "--store", "redis://127.0.0.1:1"))
		}
	}
	if lines != 1 {
		t.Errorf("got %d command lines, want 1", lines)
	}
}

// TestManifests runs the command lines in the manifests, checks the rules in them,
// and that the files that Compose mounts exist.
func TestManifests(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../../deploy/compose/compose.yaml", "../../deploy/kubernetes/weir.yaml"} {
		src := readFile(t, file)
		lines := 0
		decoder := yaml.NewDecoder(strings.NewReader(src))
		for {
			var document map[string]any
			if decoder.Decode(&document) != nil {
				break
			}
			for _, args := range commandLines(document) {
				lines++
				acceptsServe(t, append(args, "--insecure")) // tokens are secrets, which the manifests lack
			}
			if data, ok := document["data"].(map[string]any); ok {
				rules := filepath.Join(t.TempDir(), "rules.yaml")
				text, _ := data["rules.yaml"].(string)
				writeFile(t, rules, text)
				var out strings.Builder
				if code := run([]string{"check", "--strict", rules}, strings.NewReader(""), &out, &out); code != 0 {
					t.Errorf("%s: got %s", file, out.String())
				}
			}
		}
		if lines != 1 {
			t.Errorf("%s: got %d command lines of weir, want 1", file, lines)
		}
	}
	src := readFile(t, "../../deploy/compose/compose.yaml")
	var compose struct {
		Services map[string]struct {
			Volumes []string
		}
		Configs map[string]struct{ File string }
	}
	if err := yaml.Unmarshal([]byte(src), &compose); err != nil {
		t.Fatal(err)
	}
	if len(compose.Configs) == 0 {
		t.Error("got no files")
	}
	for name, c := range compose.Configs {
		if _, err := os.Stat(filepath.Join("..", "..", "deploy", "compose", c.File)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var out strings.Builder
	if code := run([]string{"check", "--strict", "../../deploy/compose/rules.yaml"}, strings.NewReader(""), &out, &out); code != 0 {
		t.Errorf("got %s", out.String())
	}
	// promtool looks for the alerts next to the configuration, as in the container.
	dir := t.TempDir()
	for _, file := range []string{"../../deploy/compose/prometheus.yml", alertsFile} {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	promtool := needtest.Program(t, "promtool")
	if out, err := exec.Command(promtool, "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
