package main

import (
	"bufio"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

// awaitFile returns when a service that syncs always has written a file: after the
// answer to a take, which it decides when it is ready.
func awaitFile(t *testing.T, api, admin string) {
	t.Helper()
	redistest.Eventually(t, "the service is ready", func() bool {
		resp, err := http.Get(admin + "/readyz")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	p := process{api: api}
	if text := p.call(t, http.MethodPost, "/v1/take", `{"attributes": {"action": "post", "user": "42"}}`); !strings.Contains(text, `"used":1`) {
		t.Fatalf("a take: got %s", text)
	}
}

// TestDurablePage follows docs/guides/durable.md: it runs the commands in order, with the
// real program on free ports.
func TestDurablePage(t *testing.T) {
	t.Parallel()
	src := readFile(t, "../../docs/guides/durable.md")
	dir := t.TempDir()
	shell := func(text string) *exec.Cmd {
		cmd := exec.Command("bash", "-euc", text)
		cmd.Dir = dir
		return cmd
	}
	var services []*exec.Cmd
	defer func() {
		for _, cmd := range services {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("the service ends with %v", err)
			}
		}
	}()
	for _, m := range fence.FindAllStringSubmatch(src, -1) {
		commands, rest, serves := strings.Cut(m[2], "weir serve ")
		if m[1] != "sh" {
			continue
		}
		if out, err := shell(commands).CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", commands, err, out)
		}
		if !serves {
			continue
		}
		cmd := shell("exec weir serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 --sync always " + rest)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		services = append(services, cmd)
		first, _ := bufio.NewReader(out).ReadString('\n')
		m := addresses.FindStringSubmatch(first)
		if m == nil {
			t.Fatalf("weir serve %s: got %q", rest, first)
		}
		awaitFile(t, m[1], m[2])
	}
}
