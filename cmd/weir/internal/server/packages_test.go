package server_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/apitest"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/needtest"
)

// forPackages starts the services that the tests of the clients call, and returns
// their environment.
func forPackages(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for name, rules := range map[string]string{
		"default": apitest.Load(t).Rules(),
		"shop":    "rules:\n  - {name: carts, per: [user], limit: 1, window: 1h}\n",
	} {
		write(t, filepath.Join(dir, name+".yaml"), rules)
	}
	token := strings.Repeat("secret", 8)
	open := start(t, withRules(dir, false))
	locked := start(t, func(c *config.Config) { c.Rules, c.Watch, c.Access.Token = dir, false, token })
	return append(os.Environ(), "WEIR_URL="+open.api, "WEIR_LOCKED_URL="+locked.api, "WEIR_TOKEN="+token)
}

// run runs a program in a folder, which must succeed, and returns what it prints.
func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needtest.Program(t, program), args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPythonClient runs the tests of the client for Python and of its middleware.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	env := forPackages(t)
	for _, tests := range []string{"test_weir.py", "test_weir_middleware.py"} {
		out := run(t, "../../../../clients/python", env, "python3", "-B", "-W", "error", tests)
		if !strings.HasSuffix(strings.TrimSpace(out), "OK") {
			t.Errorf("%s: got\n%s\nwant OK", tests, out)
		}
	}
}

// TestTypeScriptClient builds the client for TypeScript in a copy of its folder, with
// the packages in its lock file, and runs its tests and the program in the manual.
// Without npm's registry it is skipped, but fails when WEIR_REQUIRE_PROGRAMS=1.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("installing packages of npm takes long")
	}
	needtest.Program(t, "npm")
	var major, minor int
	if _, err := fmt.Sscanf(run(t, ".", os.Environ(), "node", "--version"), "v%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if major < 20 || major == 20 && minor < 3 {
		t.Skipf("the client needs Node 20.3, and this is %d.%d", major, minor)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "clients", "typescript")
	copyTracked(t, "../../../../clients/typescript", dir)
	blocks := read(t, "../../../../docs/guides/clients.md")
	page, want := "", ""
	for i, b := range blocks {
		if b.language == "ts" {
			page, want = b.text, blocks[i+1].text
		}
	}
	manual := start(t, withRules(rulesFile(t, blocks[0].text), false))
	page = strings.NewReplacer("http://localhost:8080", manual.api, "timeout: 500", "timeout: 60_000").Replace(page)
	write(t, filepath.Join(dir, "src", "page.ts"), page)
	// The settings that the page shows compile.
	made := regexp.MustCompile("`(new Client\\([^`]*\\))`").FindStringSubmatch(readFile(t, "../../../../docs/guides/clients.md"))
	if made == nil {
		t.Fatal("the page does not show the settings of a client")
	}
	settings := "import { Client } from '@weirhq/weir';\n\nconst token = 'secret';\nexport const client = " + made[1] + ";\n"
	write(t, filepath.Join(dir, "src", "settings.ts"), settings)
	env := forPackages(t)
	install := exec.CommandContext(t.Context(), needtest.Program(t, "npm"), "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		if os.Getenv("WEIR_REQUIRE_PROGRAMS") != "1" {
			t.Skipf("the packages of the client cannot be installed: %v\n%s", err, out)
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	run(t, dir, env, "npm", "test")
	if got := run(t, dir, env, "node", "dist/src/page.js"); soon.ReplaceAllString(got, "wait an hour") != soon.ReplaceAllString(want, "wait an hour") {
		t.Errorf("the program in the manual: got\n%s\nwant\n%s", got, want)
	}
}

// copyTracked copies a folder without what its .gitignore names.
func copyTracked(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); name == "node_modules" || name == "dist" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
