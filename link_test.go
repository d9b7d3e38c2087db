package weir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// server is a program without weir. limited is the same program with a limiter.
const (
	server = `package main

import "net/http"

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) })
	_ = http.ListenAndServe("localhost:8080", nil)
}
`
	limited = `package main

import (
	"net/http"
	"time"

	"github.com/weirhq/weir"
)

var limiter = weir.MustLimiter(weir.Sliding(5, time.Minute))

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if result, err := limiter.Allow(r.Context(), r.RemoteAddr); err != nil || !result.Allowed {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	_ = http.ListenAndServe("localhost:8080", nil)
}
`
)

// A program with a limiter does not link what only an engine, a rule, a hold or a shared
// store needs.
func TestLimiterLinksLittle(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	files := map[string]string{
		"go.mod":          fmt.Sprintf("module example.com/m\n\ngo 1.26.0\n\nrequire github.com/weirhq/weir v0.0.0\n\nreplace github.com/weirhq/weir => %q\n", here),
		"server/main.go":  server,
		"limited/main.go": limited,
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	size := func(flags, program string) int64 {
		t.Helper()
		run("go", "build", "-ldflags="+flags, "-o", program+".bin", "./"+program)
		info, err := os.Stat(filepath.Join(dir, program+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for _, build := range []struct {
		flags string
		most  int64
	}{
		{"-s -w", 445_000},
		{"", 640_000}, // with symbols and debug information
	} {
		if more := size(build.flags, "limited") - size(build.flags, "server"); more > build.most {
			t.Errorf("-ldflags=%q: a limiter adds %d bytes, want at most %d", build.flags, more, build.most)
		}
	}
	symbols := run("go", "tool", "nm", "limited.bin")
	for _, not := range []string{
		"regexp.Compile", "regexp/syntax.Parse", "encoding/json.Marshal", "encoding/json.Unmarshal",
		"weir.(*Engine).Do", "weir/rule.New", "weir/internal/report.(*Reporter).run", "weir/internal/drive.(*Local).askLocal",
		"weir/internal/address.Canonical", "weir/internal/limittext.", "weir/window.(*holding).",
	} {
		for line := range strings.Lines(symbols) {
			if strings.Contains(line, " T "+not) || strings.Contains(line, " T github.com/weirhq/"+not) {
				t.Errorf("a limiter links %s", strings.TrimSpace(line))
				break
			}
		}
	}
}
