// Package datatest runs tests that are written as scripts, in testdata/*.txt. It has the file format and the
// names of github.com/cockroachdb/datadriven, as far as weir's tests need them, because the library requires no
// other modules, not even in its tests.
//
// A script consists of blocks, with blank lines and comments between them:
//
//	# A comment.
//	command flag key=value list=(a, b)
//	the input, any number of lines
//	----
//	the expected output, up to the next blank line
//
// An output with blank lines follows a second separator, and ends with two more.
//
// go test -rewrite writes the output that the test got into the script.
package datatest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the output that tests got into their scripts, instead of comparing it")

const separator = "----"

// TestData is one block of a script.
type TestData struct {
	Pos     string // FILE:LINE, for messages
	Cmd     string
	CmdArgs []CmdArg
	Input   string // without white space around it
}

// CmdArg is an argument of a command: key, key=value or key=(value, value).
type CmdArg struct {
	Key  string
	Vals []string
}

// HasArg reports whether the command has an argument with a key.
func (d *TestData) HasArg(key string) bool {
	return slices.ContainsFunc(d.CmdArgs, func(a CmdArg) bool { return a.Key == key })
}

// Arg returns the value of the argument with a key, or an empty string.
func (d *TestData) Arg(key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

// Text returns the input as the text of a file. With the argument escaped, \t \r \n and \xNN stand for
// characters that a script cannot hold.
func (d *TestData) Text() string {
	if !d.HasArg("escaped") {
		return d.Input + "\n"
	}
	text, err := strconv.Unquote(`"` + strings.NewReplacer("\n", "", `"`, `\"`).Replace(d.Input) + `"`)
	if err != nil {
		return err.Error()
	}
	return text
}

// Duration returns the first argument as a duration.
func (d *TestData) Duration(t *testing.T) time.Duration {
	t.Helper()
	length, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return length
}

// Fatalf ends the test with a message that begins with the position of the block.
func (d *TestData) Fatalf(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s: %s", d.Pos, fmt.Sprintf(format, args...))
}

// Walk runs f in a subtest for each file that matches a pattern of [filepath.Glob]. No
// such file is an error.
func Walk(t *testing.T, pattern string, f func(t *testing.T, path string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files for %s, %v, want some", len(files), pattern, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) { f(t, file) })
	}
}

// RunTest calls f for each block of the script in a file, and compares what f returns
// with the expected output.
func RunTest(t *testing.T, path string, f func(*testing.T, *TestData) string) {
	t.Helper()
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewritten := RunTestFromString(t, path, string(script), f)
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(path, []byte(rewritten), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// RunTestFromString is like [RunTest] for a script that was read already. name is the name of the file in
// messages. It returns the script with the actual output.
func RunTestFromString(t *testing.T, name, script string, f func(*testing.T, *TestData) string) string {
	t.Helper()
	rewritten, differences, err := run(name, script, func(d *TestData) string { return f(t, d) })
	if err != nil {
		t.Fatal(err)
	}
	if !*rewrite {
		for _, difference := range differences {
			t.Error(difference)
		}
	}
	return rewritten
}

// run returns a script with the output that f gives, and a message for each block whose
// output is another.
func run(name, script string, f func(*TestData) string) (rewritten string, differences []string, err error) {
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	var out []string
	for at := 0; at < len(lines); at++ {
		command := strings.TrimSpace(lines[at])
		out = append(out, lines[at])
		if command == "" || command[0] == '#' {
			continue
		}
		d := &TestData{Pos: fmt.Sprintf("%s:%d", name, at+1)}
		if d.Cmd, d.CmdArgs, err = parse(command); err != nil {
			return "", nil, fmt.Errorf("%s: %w", d.Pos, err)
		}
		input := until(lines[at+1:], separator)
		at += 1 + len(input) // the separator, or the end
		want := expected(lines[min(at+1, len(lines)):])
		at += len(want)
		d.Input = strings.TrimSpace(strings.Join(input, "\n"))

		var got []string
		if output := strings.TrimSuffix(f(d), "\n"); output != "" {
			got = strings.Split(output, "\n")
		}
		if slices.Contains(got, "") {
			got = append(append([]string{separator}, got...), separator, separator)
		}
		out = append(append(append(out, input...), separator), got...)
		if !slices.Equal(got, want) {
			differences = append(differences, fmt.Sprintf("%s: %s\n%s\ngot\n%s\nwant\n%s",
				d.Pos, command, d.Input, strings.Join(got, "\n"), strings.Join(want, "\n")))
		}
	}
	return strings.Join(out, "\n") + "\n", differences, nil
}

// until returns the lines before the first one that equals end, or all.
func until(lines []string, end string) []string {
	if at := slices.Index(lines, end); at >= 0 {
		return lines[:at]
	}
	return lines
}

// expected returns the output that begins lines, with the separators around it if it has blank lines.
func expected(lines []string) []string {
	if len(lines) == 0 || lines[0] != separator {
		return until(lines, "")
	}
	for end := 2; end < len(lines); end++ {
		if lines[end-1] == separator && lines[end] == separator {
			return lines[:end+1]
		}
	}
	return lines
}

// argument matches an argument and the space before it.
var argument = regexp.MustCompile(`^\s+([^\s=]+)(=\(([^()]*)\)|=([^\s(]\S*)?)?`)

// parse splits the first line of a block into the command and its arguments.
func parse(line string) (cmd string, args []CmdArg, err error) {
	cmd = strings.Fields(line)[0]
	for rest := line[len(cmd):]; rest != ""; {
		m := argument.FindStringSubmatch(rest)
		if m == nil {
			return "", nil, errors.New("cannot parse the command from " + rest)
		}
		arg := CmdArg{Key: m[1]}
		switch {
		case strings.HasPrefix(m[2], "=("):
			for value := range strings.SplitSeq(m[3], ",") {
				arg.Vals = append(arg.Vals, strings.TrimSpace(value))
			}
		case m[2] != "":
			arg.Vals = []string{m[4]}
		}
		args, rest = append(args, arg), rest[len(m[0]):]
	}
	return cmd, args, nil
}
