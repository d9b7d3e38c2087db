package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

// TestUnit lets systemd check the unit, by itself and with the addition of
// docs/guides/deployment.md: that it knows every line, and how exposed the service is. The unit
// itself does not run here.
func TestUnit(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/guides/deployment.md")
	var addition string
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[1] == "ini" {
			addition = m[2]
		}
	}
	if addition == "" {
		t.Fatal("docs/guides/deployment.md has no addition to the unit")
	}
	t.Run("alone", func(t *testing.T) { t.Parallel(); testUnit(t, "") })
	t.Run("outside", func(t *testing.T) { t.Parallel(); testUnit(t, addition) })
}

func testUnit(t *testing.T, addition string) {
	analyze := needtest.Program(t, "systemd-analyze")
	src := readFile(t, "../../deploy/systemd/weir.service")
	weir, err := exec.LookPath("weir") // the program of these tests
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "weir.service")
	more := filepath.Join(unit+".d", "outside.conf")
	if err := os.Mkdir(unit+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{unit: src, more: addition} {
		writeFile(t, file, strings.ReplaceAll(text, "ExecStart=weir ", "ExecStart="+weir+" "))
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), unit) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", unit).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for \S+ ([0-9.]+) `).FindSubmatch(out)
	if m == nil {
		t.Fatalf("systemd-analyze security: %v\n%s", err, out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 2 {
		t.Errorf("got exposure %v %v, want at most 2\n%s", level, err, out)
	}

	// Its command line is one that weir accepts, but for the files.
	lines := regexp.MustCompile(`(?m)^ExecStart=\S+ (serve .*)$`).FindAllStringSubmatch(src+addition, -1)
	if lines == nil {
		t.Fatal("got no ExecStart")
	}
	args := lines[len(lines)-1][1]
	credentials := t.TempDir()
	if strings.Contains(args, "%d/") {
		cert, key, _ := selfSigned(t)
		tokens := filepath.Join(credentials, "tokens")
		var out strings.Builder
		err := errors.Join(os.Rename(cert, filepath.Join(credentials, "cert.pem")), os.Rename(key, filepath.Join(credentials, "key.pem")))
		if code := run([]string{"token", "new", "shop", "--scopes", "decide", "--tokens", tokens}, strings.NewReader(""), &out, &out); code != 0 || err != nil {
			t.Fatal(err, out.String())
		}
	}
	acceptsServe(t, strings.Fields(strings.NewReplacer("/run/weir/", t.TempDir()+"/", "%d/", credentials+"/").Replace(args)))
}
