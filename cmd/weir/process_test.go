package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// process is the real program in a separate process.
type process struct {
	*exec.Cmd
	api, admin string
	out        lockedBuffer // but for the first line
	logs       lockedBuffer
	stopped    bool // by the test
}

// lockedBuffer is a buffer that one goroutine writes and others read.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startProcess runs weir serve with rules and arguments on free ports. shell is
// what a shell does before, such as ulimit. The end of the test ends the process,
// which must then end well.
func startProcess(t *testing.T, shell, rules string, args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, rules)
	if rules != "" { // otherwise args name koala's
		args = append([]string{"--rules", file}, args...)
	}
	line := fmt.Sprintf("%s exec weir serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 %s", shell, strings.Join(args, " "))
	p := &process{Cmd: exec.Command("bash", "-euc", line)}
	p.Stderr = &p.logs
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	first, _ := r.ReadString('\n')
	m := addresses.FindStringSubmatch(first)
	if m == nil {
		_ = p.Wait()
		t.Fatalf("%s\ngot %q, want addresses\n%s", line, first, p.logs.String())
	}
	p.api, p.admin = m[1], m[2]
	go func() { _, _ = io.Copy(&p.out, r) }()
	t.Cleanup(func() {
		if !p.stopped {
			p.end(t)
		}
	})
	return p
}

// end ends the process as a deploy does.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.stopped = true
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("the service ends with %v\n%s", err, p.logs.String())
	}
}

// kill ends the process with kill -9.
func (p *process) kill() {
	p.stopped = true
	_ = p.Process.Kill() // it may have ended by itself
	_ = p.Wait()         // it was killed
}

// metric returns the value of a metric. One with labels that has no series yet is 0.
func (p *process) metric(t *testing.T, name string) float64 {
	t.Helper()
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	if !strings.Contains(name, "{") {
		t.Fatalf("got no metric %s", name)
	}
	return 0
}

// peak returns the most memory, in bytes, that the process has taken so far.
func (p *process) peak(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("got no VmHWM in /proc")
	return 0
}
