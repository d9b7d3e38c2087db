package datatest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
)

const script = `# What a block has.
show flag key=value empty= list=(a, b c)
first

last
----
show ["flag" [] "key" ["value"] "empty" [""] "list" ["a" "b c"]]
|first
|
|last

# Without input, and without output.
show
----
show []
|
nothing
----
`

func show(d *datatest.TestData) string {
	if d.Cmd == "nothing" {
		return ""
	}
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, fmt.Sprintf("%q %q", a.Key, a.Vals))
	}
	return fmt.Sprintf("%s %v\n|%s\n", d.Cmd, args, strings.ReplaceAll(d.Input, "\n", "\n|"))
}

func TestRun(t *testing.T) {
	t.Parallel()
	good := strings.Replace(script, "|\nnothing", "|\n\nnothing", 1)
	rewritten, differences, err := datatest.Run("x.txt", good, show)
	if rewritten != good || differences != nil || err != nil {
		t.Errorf("got %v, %q and\n%s\nwant the script as it was:\n%s", err, differences, rewritten, good)
	}

	// What differs, stands there too long, or is not there yet, is told and rewritten.
	for name, bad := range map[string]string{
		"differs":  strings.Replace(good, "|last", "|least", 1),
		"too long": strings.Replace(good, "|last", "|last\n|", 1),
		"missing":  strings.Replace(good, "|\n\nnothing", "\nnothing", 1),
	} {
		rewritten, differences, err := datatest.Run("x.txt", bad, show)
		if rewritten != good || len(differences) != 1 || err != nil {
			t.Errorf("%s: got %v, %q and\n%s\nwant one difference and\n%s", name, err, differences, rewritten, good)
		}
	}
	if _, differences, _ := datatest.Run("x.txt", "\nshow\nin", show); len(differences) != 1 || differences[0] != "x.txt:2: show\nin\ngot\nshow []\n|in\nwant\n" {
		t.Errorf("got %q, want the position and both outputs", differences)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	blank := func(*datatest.TestData) string { return "a\n\nb" }
	for bad, f := range map[string]func(*datatest.TestData) string{
		"show =x":      show,
		"show a=(b":    show,
		"show a=(b)c":  show,
		"blank output": blank,
	} {
		if _, _, err := datatest.Run("x.txt", bad, f); err == nil || !strings.HasPrefix(err.Error(), "x.txt:1: ") {
			t.Errorf("%s: got %v, want an error with the position", bad, err)
		}
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "c.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("name\n----\n"+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var ran []string
	datatest.Walk(t, filepath.Join(dir, "*.txt"), func(t *testing.T, path string) {
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			ran = append(ran, t.Name()+" "+filepath.Base(path))
			if d.HasArg("flag") || d.Cmd != "name" {
				d.Fatalf(t, "got %+v, want a command without arguments", d)
			}
			return filepath.Base(path)
		})
	})
	if got := strings.Join(ran, ", "); got != "TestWalk/a a.txt, TestWalk/b b.txt" {
		t.Errorf("got %s, want a subtest for each script", got)
	}
}
