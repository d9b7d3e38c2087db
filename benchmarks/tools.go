package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/benchmarks/measure"
)

// tools are programs of weir, which are built once and run beside the benchmarks.
type tools struct {
	folder string // for programs and files; it is removed at the end
	root   string // of weir's module
	built  map[string]string
}

func (t *tools) open() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/weirhq/weir").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	t.root = strings.TrimSpace(string(out))
	t.folder, err = os.MkdirTemp("", "bench-peers-*")
	return err
}

func (t *tools) close() error {
	if t.folder == "" {
		return nil
	}
	return os.RemoveAll(t.folder)
}

// build returns the path of a program whose package is given by its folder in the
// repository.
func (t *tools) build(pkg string) (string, error) {
	if t.folder == "" {
		if err := t.open(); err != nil {
			return "", err
		}
	}
	if path := t.built[pkg]; path != "" {
		return path, nil
	}
	path := filepath.Join(t.folder, filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-C", filepath.Join(t.root, pkg), "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./%s: %w\n%s", pkg, err, out)
	}
	if t.built == nil {
		t.built = make(map[string]string)
	}
	t.built[pkg] = path
	return path, nil
}

// file writes a file into the folder and returns its path.
func (t *tools) file(name, text string) (string, error) {
	if t.folder == "" {
		if err := t.open(); err != nil {
			return "", err
		}
	}
	path := filepath.Join(t.folder, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// serve starts the service with the text of a rules file and more flags.
func (t *tools) serve(rules string, flags ...string) (*measure.Service, error) {
	weir, err := t.build("cmd/weir")
	path, err2 := t.file("rules.yaml", rules)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return measure.StartService(weir, func(a, b, c string) []string {
		return append([]string{"serve", "--rules", path, "--listen", a, "--admin", b, "--koala-listen", c, "--log-level", "error"}, flags...)
	})
}
