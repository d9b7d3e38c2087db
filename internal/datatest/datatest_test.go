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

# With characters that a script cannot hold, and a blank line in the output.
text after=(a, b)
"first"
----
a,b"first"

text escaped
"first"\n
\nlast
----
----
"first"

last
----
----

# Without input, and without output.
show
----
show []
|

nothing
----
`

func show(d *datatest.TestData) string {
	switch d.Cmd {
	case "nothing":
		return ""
	case "text":
		return d.Arg("after") + d.Text()
	}
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, fmt.Sprintf("%q %q", a.Key, a.Vals))
	}
	return fmt.Sprintf("%s %v\n|%s\n", d.Cmd, args, strings.ReplaceAll(d.Input, "\n", "\n|"))
}

func TestRun(t *testing.T) {
	t.Parallel()
	rewritten, differences, err := datatest.Run("x.txt", script, show)
	if rewritten != script || differences != nil || err != nil {
		t.Errorf("got %v, %q and\n%s\nwant the script as it was:\n%s", err, differences, rewritten, script)
	}

	// What differs, stands there too long, or is not there yet, is told and rewritten.
	for name, bad := range map[string]string{
		"differs":  strings.Replace(script, "|last", "|least", 1),
		"too long": strings.Replace(script, "|last", "|last\n|", 1),
		"missing":  strings.Replace(script, "|\n\nnothing", "\nnothing", 1),
	} {
		rewritten, differences, err := datatest.Run("x.txt", bad, show)
		if rewritten != script || len(differences) != 1 || err != nil {
			t.Errorf("%s: got %v, %q and\n%s\nwant one difference and\n%s", name, err, differences, rewritten, script)
		}
	}
	if _, differences, _ := datatest.Run("x.txt", "\nshow\nin", show); len(differences) != 1 || differences[0] != "x.txt:2: show\nin\ngot\nshow []\n|in\nwant\n" {
		t.Errorf("got %q, want the position and both outputs", differences)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"show =x", "show a=(b", "show a=(b)c"} {
		if _, _, err := datatest.Run("x.txt", bad, show); err == nil || !strings.HasPrefix(err.Error(), "x.txt:1: ") {
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
