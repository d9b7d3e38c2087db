//go:build unix

package main

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

var named = regexp.MustCompile("(?s)```(yaml|text|go|sh) ?([a-z_.]*)\n(.*?)```\n")

// TestTutorial follows docs/start/tutorial.md: it writes the files, runs the commands in
// a shell with the real program, and compares what they print. The service and the login
// page get free ports.
func TestTutorial(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/start/tutorial.md")
	dir := t.TempDir()
	listen, admin, login := freeAddr(t), freeAddr(t), freeAddr(t)
	ports := strings.NewReplacer("127.0.0.1:8080", listen, "127.0.0.1:8081", admin, "127.0.0.1:9000", login)
	shell := func(text string) *exec.Cmd {
		cmd := exec.Command("bash", "-euc", text)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEIR_ADDR=http://"+listen)
		return cmd
	}
	printed, commands := "", 0
	for _, block := range named.FindAllStringSubmatch(page, -1) {
		language, file, text := block[1], block[2], ports.Replace(block[3])
		switch {
		case file != "":
			writeFile(t, filepath.Join(dir, filepath.Base(file)), text)
			if language == "go" {
				background(t, shell("exec go run "+file), "http://"+login)
			}
		case strings.HasPrefix(text, "weir serve "):
			background(t, shell("exec "+strings.TrimSpace(text)+" --listen "+listen+" --admin "+admin), "http://"+admin+"/readyz")
		case language == "sh":
			commands++
			printed = ""
			// What follows an edit of the rules waits until the service has read them.
			for deadline := time.Now().Add(time.Minute); ; {
				out, err := shell(text).CombinedOutput()
				if err != nil {
					t.Fatalf("%s\n%v\n%s", text, err, out)
				}
				printed = string(out)
				if !strings.HasPrefix(text, "sed ") || strings.Contains(printed, "too many") || time.Now().After(deadline) {
					break
				}
			}
		case language == "text":
			if !strings.Contains(printed, text) {
				t.Errorf("the page shows\n%s\nthe command prints\n%s", text, printed)
			}
		}
	}
	if !strings.Contains(printed, "denied by logins") || commands != 7 {
		t.Errorf("got %d commands, the last of which prints %q; want 7, and an explanation", commands, printed)
	}
}

// TestSessionOfReadme runs the session that the README shows as a picture. A picture that is
// not animated shows all of it at once, also where it is printed.
func TestSessionOfReadme(t *testing.T) {
	t.Parallel()
	picture := readFile(t, "../../docs/images/terminal.svg")
	if strings.Contains(picture, "animat") {
		t.Error("the picture is animated")
	}
	session := ""
	for _, line := range regexp.MustCompile(`<text[^>]*>(.*)</text>`).FindAllStringSubmatch(picture, -1) {
		session += html.UnescapeString(line[1]) + "\n"
	}
	dir, listen, admin := t.TempDir(), freeAddr(t), freeAddr(t)
	shell := func(text, into string) *exec.Cmd {
		cmd := exec.Command("bash", "-c", text+" >"+into)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEIR_ADDR=http://"+listen)
		return cmd
	}
	ports, seconds := strings.NewReplacer("127.0.0.1:8080", listen, "127.0.0.1:8081", admin), regexp.MustCompile(`[0-9.]+s`)
	commands := strings.Split(session, "$ ")[1:]
	for _, c := range commands {
		command, want, _ := strings.Cut(c, "\n")
		if command == "cat rules.yaml" {
			writeFile(t, filepath.Join(dir, "rules.yaml"), want)
		}
		if serve, ok := strings.CutSuffix(command, " &"); ok {
			background(t, shell("exec "+serve+" --listen "+listen+" --admin "+admin, "printed"), "http://"+admin+"/readyz")
		} else if err := shell("("+command+")", "printed").Run(); err != nil && !strings.HasPrefix(want, "denied") {
			t.Fatalf("%s: %v", command, err)
		}
		want = seconds.ReplaceAllString(ports.Replace(want), "…s")
		redistest.Eventually(t, command+" prints\n"+want, func() bool {
			return seconds.ReplaceAllString(readFile(t, filepath.Join(dir, "printed")), "…s") == want
		})
	}
	if len(commands) != 6 {
		t.Errorf("got %d commands, want 6", len(commands))
	}
}

// background runs a program until the test ends, and returns when url answers.
func background(t *testing.T, cmd *exec.Cmd, url string) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run starts another process
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	redistest.Eventually(t, url+" answers", func() bool {
		resp, err := http.Get(url)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
}
