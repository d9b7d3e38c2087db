package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
	"github.com/weirhq/weir/cmd/weir/internal/top"
)

// operatePages are the pages that an operator follows, in this order.
var operatePages = []string{"security", "deployment", "monitoring", "personal-data"}

func readOperatePages(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range operatePages {
		all.WriteString(readFile(t, "../../docs/guides/"+name+".md"))
	}
	return all.String()
}

// TestOperate follows operatePages: it runs the commands in order, in a shell and against
// the real program, on free ports.
func TestOperate(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"openssl", "curl"} {
		needtest.Program(t, program)
	}
	o := operator{t: t, dir: t.TempDir()}
	var shown []string
	for _, m := range fence.FindAllStringSubmatch(readOperatePages(t), -1) {
		switch m[1] {
		case "sh":
			text := m[2]
			if strings.HasPrefix(text, "weir forget") { // in the terminal of the commands before
				text = "export WEIR_ADDR=https://weir.example:8443 WEIR_CA=$PWD/cert.pem WEIR_TOKEN=$(cat ops.token)\n" + text
			}
			shown = append(shown, o.shell(text))
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

// serve starts the service on free ports instead of those of the page.
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

// TestOperateInstalls runs the commands of operatePages that install files, below a
// temporary directory. It checks that the unit finds its files where they go, that
// others can read what they must, and Prometheus' configuration with promtool.
func TestOperateInstalls(t *testing.T) {
	t.Parallel()
	unit := readFile(t, "../../deploy/systemd/weir.service")
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	work, root := t.TempDir(), t.TempDir()
	for _, dir := range []string{"/etc/prometheus", "/etc/systemd/system"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(clone, "deploy"), filepath.Join(work, "deploy")); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"ops.token", "cert.pem", "rules.yaml"} { // by earlier commands of the page
		writeFile(t, filepath.Join(work, made), "")
	}
	rooted := strings.NewReplacer(" /etc/", " "+root+"/etc/", " -g prometheus", "")
	installed, config := 0, ""
	for _, m := range fence.FindAllStringSubmatch(readOperatePages(t), -1) {
		if m[1] == "yaml" && strings.Contains(m[2], "scrape_configs") {
			config = m[2]
		}
		if m[1] != "bash" {
			continue
		}
		for line := range strings.Lines(m[2]) {
			line = strings.TrimSpace(line)
			program, _, _ := strings.Cut(line, " ")
			switch program {
			case "install":
				cmd := exec.Command("bash", "-euc", rooted.Replace(line))
				cmd.Dir = work
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
				installed++
			case "go":
				// The unit has only the program's name, which systemd looks for in /usr/local/bin
				// and in /usr/bin, where packages have it.
				if line != "go build -o /usr/local/bin/weir ./cmd/weir" || !strings.Contains(unit, "\nExecStart=weir serve") {
					t.Errorf("%s: the unit starts another program", line)
				}
			case "promtool":
				writeFile(t, filepath.Join(root+"/etc/prometheus", "prometheus.yml"), config)
				out, err := exec.Command(needtest.Program(t, "promtool"), strings.Fields(rooted.Replace(line))[1:]...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			case "systemctl":
				if fields := strings.Fields(line); fields[1] != "daemon-reload" && fields[len(fields)-1] != "weir" && fields[len(fields)-1] != "prometheus" {
					t.Errorf("%s: there is no such unit", line)
				}
			case "curl":
			default:
				t.Errorf("got a line that the test does not know: %s", line)
			}
		}
	}
	for file, want := range map[string]os.FileMode{
		"/etc/weir/rules.yaml": 0o644, "/etc/systemd/system/weir.service": 0o644,
		"/etc/prometheus/ops.token": 0o640, "/etc/prometheus/cert.pem": 0o640, "/etc/prometheus/alerts.yaml": 0o644,
	} {
		if info, err := os.Stat(root + file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want mode %o", file, info, err, want)
		}
	}
	if installed < 5 || !strings.Contains(unit, " --rules /etc/weir/rules.yaml ") {
		t.Errorf("got %d files, and a unit\n%s", installed, unit)
	}
}

// TestCommandsPage compares docs/reference/commands.md with the commands of the program.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/reference/commands.md")
	var want strings.Builder
	list(&want, newRoot())
	_, got, _ := strings.Cut(page, "|---|---|\n")
	got, _, _ = strings.Cut(got, "\n\n")
	if strings.TrimSpace(got) != strings.TrimSpace(want.String()) {
		t.Errorf("got\n%s\nwant\n%s", got, want.String())
	}
}

// list writes a row for each command below parent that does something.
func list(out *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.Runnable() && !c.Hidden && !c.HasSubCommands() {
			fmt.Fprintf(out, "| `%s` | %s |\n", c.CommandPath(), strings.ReplaceAll(c.Short, "|", `\|`))
		}
		list(out, c)
	}
}
