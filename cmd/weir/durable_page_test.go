package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDurablePage follows docs/durable.md: it runs the commands in order, with the
// real program on free ports, and checks the command lines in the other blocks.
func TestDurablePage(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../docs/durable.md")
	if err != nil {
		t.Fatal(err)
	}
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
	for _, m := range fence.FindAllStringSubmatch(string(src), -1) {
		commands, rest, serves := strings.Cut(m[2], "weir serve ")
		switch m[1] {
		case "sh":
			if out, err := shell(commands).CombinedOutput(); err != nil {
				t.Fatalf("%s\n%v\n%s", commands, err, out)
			}
			if !serves {
				continue
			}
			cmd := shell("exec weir serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 " + rest)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			services = append(services, cmd)
			if first, _ := bufio.NewReader(out).ReadString('\n'); !listens.MatchString(first) {
				t.Errorf("weir serve %s: got %q", rest, first)
			}
			for { // until the first flush
				if files, err := filepath.Glob(filepath.Join(dir, "data", "*.log")); err != nil || len(files) > 0 {
					break
				}
				time.Sleep(time.Millisecond)
			}
		case "yaml":
			line := regexp.MustCompile(`args: \[serve, (.*)\]`).FindStringSubmatch(m[2])
			if line == nil {
				continue
			}
			var errs strings.Builder
			args := append([]string{"serve"}, strings.Split(strings.ReplaceAll(line[1], `"`, ""), ", ")...)
			if code := run(args, strings.NewReader(""), &errs, &errs); code != exitError || !strings.Contains(errs.String(), "/etc/weir/") {
				t.Errorf("%v: got %d %s, want that only the files are missing", args, code, errs.String())
			}
		}
	}
}
