package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/rulefile"
)

var fence = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```\n")

// TestReadme follows the README as a newcomer does. It runs the commands in
// order, parses the rules, runs the program, and compares the answers.
func TestReadme(t *testing.T) {
	t.Parallel()
	src := readFile(t, "../../README.md")
	n := newcomer{t: t, dir: t.TempDir()}
	for _, m := range fence.FindAllStringSubmatch(src, -1) {
		switch language, text := m[1], m[2]; language {
		case "sh":
			n.shell(text)
		case "json":
			if got, want := shape(n.answer), shape(text); got != want {
				t.Errorf("the sixth call: got\n%s\nwant\n%s", got, want)
			}
		case "yaml":
			if _, err := rulefile.Parse("README.md", []byte(text), nil); err != nil {
				t.Errorf("rules: %v", err)
			}
		case "text":
			if !strings.Contains(n.printed, text) {
				t.Errorf("weir %s: got\n%s\nwant in it\n%s", n.did[len(n.did)-1], n.printed, text)
			}
		case "go":
			n.program(text)
		}
	}
	if want := "get install go init check serve curl replay replay"; strings.Join(n.did, " ") != want {
		t.Errorf("the README leads through %v, want %s", n.did, want)
	}
}

// TestStore starts the service of docs/start/deployments.md with a store, on a Redis of
// its own.
func TestStore(t *testing.T) {
	t.Parallel()
	redis := redistest.Server(t)
	src := readFile(t, "../../docs/start/deployments.md")
	line := regexp.MustCompile(`weir (serve .*) --store redis://localhost:6379 --nodes 2\n`).FindStringSubmatch(src)
	if line == nil {
		t.Fatal("the page starts no service on a store")
	}
	n := newcomer{t: t, dir: t.TempDir()}
	n.weir([]string{"init", "rules.yaml"})
	n.weir(append(strings.Fields(line[1]), "--store", "redis://"+redis.Addr()+"?timeout=10s", "--nodes", "2"))
	redistest.Eventually(t, "the store decides", func() bool { // on a busy machine Redis may answer too late
		n.curl("/v1/check", `{"attributes":{"action":"post","user":"42"}}`)
		return !strings.Contains(n.answer, "degraded")
	})
	n.curl("/v1/take", `{"attributes":{"action":"post","user":"42"}}`)
	if !strings.Contains(n.answer, `"allowed":true`) {
		t.Errorf("got %s, want allowed", n.answer)
	}
	redistest.Eventually(t, "it is counted in Redis", func() bool { return len(redis.Must("KEYS", "weir:*").([]any)) > 0 })
}

// newcomer runs the commands of the README in a temporary directory.
type newcomer struct {
	t       *testing.T
	dir     string
	api     string // of the running service
	answer  string // of its last call
	printed string // by its last command
	did     []string
}

var calls = regexp.MustCompile(`(?s)^for i in ([0-9 ]+); do\s+curl -s 127\.0\.0\.1:8080(\S+) -d '([^']*)'`)

func (n *newcomer) shell(text string) {
	n.t.Helper()
	if m := calls.FindStringSubmatch(text); m != nil {
		n.did = append(n.did, "curl")
		for range strings.Fields(m[1]) {
			n.curl(m[2], m[3])
		}
		return
	}
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "go install github.com/weirhq/weir/cmd/weir@latest":
			n.install()
			continue
		case "go get github.com/weirhq/weir":
			n.did = append(n.did, "get") // make rehearse runs it; program compiles the library
			continue
		}
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/weir ")
		if !ok {
			n.t.Errorf("got a line that the test cannot run: %q", line)
			continue
		}
		if strings.Contains(args, "--store") {
			continue // TestStore runs it
		}
		n.weir(strings.Fields(args))
	}
}

// install installs the program in the directory of the newcomer, from the working tree,
// as the README says it of a clone. make rehearse installs a release.
func (n *newcomer) install() {
	n.t.Helper()
	n.did = append(n.did, "install")
	cmd := exec.CommandContext(n.t.Context(), "go", "install", "./cmd/weir")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOBIN="+n.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "weir")); err != nil {
		n.t.Error(err)
	}
}

// curl posts body as curl -d does.
func (n *newcomer) curl(path, body string) {
	n.t.Helper()
	resp, err := http.Post(n.api+path, "application/x-www-form-urlencoded", strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	n.answer = string(answer)
}

func (n *newcomer) weir(args []string) {
	n.t.Helper()
	n.did = append(n.did, args[0])
	for i, a := range args {
		switch a {
		case "rules.yaml", "access.log":
			args[i] = filepath.Join(n.dir, a)
		case "examples/wordpress.yaml", "examples/failed-logins.yaml", "examples/logins.jsonl.gz":
			args[i] = filepath.Join("..", "..", a)
		}
	}
	switch args[0] {
	case "serve":
		n.api = startProcess(n.t, "", "", args[1:]...).api
		return
	case "top", "explain", "usage":
		args = append(args, "--addr", n.api)
	case "replay":
		if filepath.Base(args[len(args)-1]) != "access.log" {
			break
		}
		line := `192.0.2.1 - - [20/Feb/2016:00:00:45 -0500] "POST /wp-login.php HTTP/1.1" 200 187 "-" "-"` + "\n"
		if err := os.WriteFile(args[len(args)-1], []byte(strings.Repeat(line, 6)), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &out); code != 0 {
		n.t.Errorf("weir %v: exit status %d\n%s", args, code, out.String())
	}
	n.printed = out.String()
}

// program runs a Go program that imports this module.
func (n *newcomer) program(text string) {
	n.t.Helper()
	n.did = append(n.did, "go")
	file := filepath.Join(n.dir, "main.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if got, want := lines[len(lines)-1], "false 0 1h0m0s <nil>"; len(lines) != 6 || got != want {
		n.t.Errorf("the program prints\n%s\nwant six lines, the last %s", out, want)
	}
}

var waits = regexp.MustCompile(`("(?:retry|reset)_after":)[0-9.]+`)

// shape returns an answer without its waits.
func shape(answer string) string {
	return strings.TrimSpace(waits.ReplaceAllString(answer, "${1}…"))
}
