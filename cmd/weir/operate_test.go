package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/needtest"
	"github.com/weirhq/weir/internal/top"
)

// TestOperate follows docs/operate.md: it runs the commands in order, in a shell
// and against the real program, on free ports.
func TestOperate(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"openssl", "curl"} {
		needtest.Program(t, program)
	}
	src, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	o := operator{t: t, dir: t.TempDir()}
	var shown []string
	for _, m := range fence.FindAllStringSubmatch(string(src), -1) {
		switch m[1] {
		case "sh":
			shown = append(shown, o.shell(m[2]))
		case "yaml":
			if !strings.Contains(m[2], "ops.token") || !strings.Contains(m[2], ":8444") {
				t.Errorf("got a configuration for other files or ports:\n%s", m[2])
			}
		}
	}
	all := strings.Join(shown, "\n")
	keys, err := top.NewKeyText(top.KeyHashed, "a secret of your own")
	if err != nil {
		t.Fatal(err)
	}
	hash, _ := keys.Of("42")
	for _, want := range []string{`"allowed":true`, `posts-per-hour  42   1     5`, hash} {
		if !strings.Contains(all, want) {
			t.Errorf("got no %s in what the commands print:\n%s", want, all)
		}
	}
}

// operator runs the commands of the page.
type operator struct {
	t     *testing.T
	dir   string
	ports []string // replacements of ports
}

// shell runs the commands in text, and returns what they print. A service runs
// until the test ends.
func (o *operator) shell(text string) string {
	o.t.Helper()
	if before, serve, ok := strings.Cut(text, "weir serve"); ok {
		out := o.run(before)
		o.serve("weir serve" + serve)
		return out
	}
	return o.run(text)
}

func (o *operator) bash(text string) *exec.Cmd {
	text = strings.NewReplacer(o.ports...).Replace(text)
	// The name of the page's certificate is on this machine.
	text = strings.ReplaceAll(text, "curl ", "curl -sS --connect-to ::127.0.0.1: ")
	text = strings.ReplaceAll(text, "WEIR_ADDR=https://weir.example", "WEIR_ADDR=https://localhost")
	text = strings.ReplaceAll(text, "DNS:weir.example", "DNS:weir.example,DNS:localhost")
	cmd := exec.Command("bash", "-euc", text)
	cmd.Dir = o.dir
	return cmd
}

func (o *operator) run(text string) string {
	o.t.Helper()
	out, err := o.bash(text).CombinedOutput()
	if err != nil {
		o.t.Fatalf("%s\n%v\n%s", text, err, out)
	}
	return string(out)
}

var listens = regexp.MustCompile(`weir listens on (\S+), its admin on (\S+)`)

// serve starts the service on free ports in place of those of the page.
func (o *operator) serve(text string) {
	o.t.Helper()
	for _, port := range regexp.MustCompile(`:(\d{4})\b`).FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, port[0], ":0")
		o.ports = append(o.ports, port[0], "")
	}
	cmd := o.bash("exec " + text)
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	var logs strings.Builder
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	first, _ := r.ReadString('\n')
	m := listens.FindStringSubmatch(first)
	if m == nil {
		_ = cmd.Wait()
		o.t.Fatalf("%s\ngot %q, want addresses\n%s", text, first, logs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	o.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			o.t.Errorf("the service ends with %v\n%s", err, logs.String())
		}
	})
	for i, url := range m[1:] {
		_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
		if err != nil {
			o.t.Fatal(err)
		}
		o.ports[2*i+1] = ":" + port
	}
	if _, err := os.Stat(filepath.Join(o.dir, "tokens")); err != nil {
		o.t.Fatal(err)
	}
}
