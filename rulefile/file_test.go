package rulefile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

func TestLoadReadsListFilesBesideTheRulesFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "crew.txt")
	src := "lists: {a: {file: lists/a.txt}, crew: {file: " + elsewhere + "}}\n" +
		"rules: [{name: r, when: {who: {in: a}}, then: deny}]\n"
	write(t, filepath.Join(dir, "rules.yaml"), src)
	write(t, filepath.Join(dir, "lists", "a.txt"), "mallory\n")
	write(t, elsewhere, "carol\n")

	f, err := rulefile.Load(filepath.Join(dir, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "lists", "a.txt"), elsewhere}
	if !slices.Equal(f.Lists, want) {
		t.Errorf("got lists %v, want %v", f.Lists, want)
	}
	if f.Zone != time.UTC {
		t.Errorf("got zone %v, want UTC", f.Zone)
	}
	test := f.Set.Rule(0).When[0].Test
	if !test.Holds("mallory") || test.Holds("carol") {
		t.Errorf("got a list that holds mallory: %v, carol: %v, want only mallory", test.Holds("mallory"), test.Holds("carol"))
	}
}

func TestLoadNamesTheFileThatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := rulefile.Load(filepath.Join(t.TempDir(), "rules.yaml"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "rules.yaml") {
		t.Errorf("got %v, want that rules.yaml does not exist", err)
	}
}

func TestListFilesAreRefusedWithoutAWayToReadThem(t *testing.T) {
	t.Parallel()
	_, err := rulefile.Parse("rules.yaml", []byte("lists: {a: {file: a.txt}}\nrules: []"), nil)
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Place.Line != 1 || faults[0].Place.Column != 19 {
		t.Errorf("got %v, want one fault at 1:19", err)
	}
}

func TestOutcomesBecomeJSON(t *testing.T) {
	t.Parallel()
	f, err := rulefile.Load("testdata/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o, _ := f.Set.Outcome("puzzle")
	want := `{"kind":"image","tries":3,"hints":["corner",null,1.5],"on":true}`
	if string(o.Body) != want || o.Status != 429 {
		t.Errorf("got %d %s, want 429 %s", o.Status, o.Body, want)
	}
}

func TestFaultsHaveTheirPartsApart(t *testing.T) {
	t.Parallel()
	_, err := rulefile.Parse("dir/rules.yaml", []byte("rules:\n  - name: a\n    limit: -1\n    window: 1h\n"), nil)
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) != 1 {
		t.Fatalf("got %v, want one fault", err)
	}
	want := fault.Fault{
		Rule: "a", Problem: "limit is -1, want a whole number from 0 to 2^53-1",
		Place: fault.Place{File: "dir/rules.yaml", Line: 3, Column: 12, Source: "    limit: -1"},
	}
	if *faults[0] != want {
		t.Errorf("got %+v, want %+v", *faults[0], want)
	}
}

func TestExampleIsWhole(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../cmd/weir/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := rulefile.Parse("weir.yaml", example, nil)
	if err != nil {
		t.Fatalf("got\n%v\nwant no fault", err)
	}
	if n := f.Set.Len(); n < 3 || n > 6 {
		t.Errorf("got %d rules, want 3 to 6", n)
	}
	if err := validate(t, example); err != nil {
		t.Errorf("got %v, want a valid file", err)
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1us": time.Microsecond, "5ms": 5 * time.Millisecond, "0.5s": time.Second / 2,
		"1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "2w": 336 * time.Hour, "1.5d": 36 * time.Hour,
		"1w1d1h1m1s": 193*time.Hour + 61*time.Second, "36500d": window.MaxLength,
	} {
		if got, err := rulefile.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "1", "h", "-1h", "+1h", "1 h", "1h ", "1H", "1y", "1.h", ".5h", "1e3s", "0s", "0.5us", "1ns",
		"36501d", "5300w", "99999999999999999999h", "36500d1us", "1h30",
	} {
		if got, err := rulefile.ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadingIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		src  string
		want string
	}{
		"size":               {strings.Repeat("# a comment\n", 2<<20), "the file has 24 MiB, want at most 16"},
		"faults":             {"rules:\n" + strings.Repeat("  - 5\n", 5000), "a rule is 5, want a table"},
		"indent":             {"a:\n" + strings.Repeat(" ", 2000) + "b: c\n", "nested too deep"},
		"dashes":             {strings.Repeat("- ", 100_000), "nested too deep"},
		"brackets":           {strings.Repeat("{a: [", 100_000), "nested too deep"},
		"dashes in brackets": {"[" + strings.Repeat("- ", 100_000), "a dash within brackets"},
		"keys":               {keysInLines(30_000), "too many keys in lines"},
		"keys of tables":     {"rules:\n" + strings.Repeat("  - limit:\n      by: plan\n      "+strings.ReplaceAll(keysInLines(6000), "\n", "\n      ")+"\n", 4), "too many keys in lines"},
		"keys without value": {"{" + strings.Repeat("a,", 100_000) + "}", "too many values are left out"},
		"colons":             {"{" + strings.Repeat("a:,", 100_000) + "}", "too many values are left out"},
		"empty items":        {"rules:\n" + strings.Repeat("-\n", 100_000), "too many values are left out"},
		"long key":           {"rules: {" + strings.Repeat("k", 300_000) + ": [" + strings.Repeat("1,", 100_000) + "]}", "too many values below long keys"},
		"long keys in lines": {"rules:\n  " + strings.Repeat("k", 1000) + ":\n    " + strings.Repeat("k", 1000) + ": [" + strings.Repeat("1,", 300_000) + "]", "too many values below long keys"},
		"lists in lists":     {strings.Repeat("- ", 500) + "[" + strings.Repeat("1,", 300_000) + "]", "too many values below long keys"},
		"patterns":           {rulesWithPatterns(101, "(abcdefghij){1000}"), "patterns up to here are too large"},
		"blank lines":        {"rules: |\n  a\n" + strings.Repeat("\n", 100_000), "too many blank lines"},
		"lines of blanks":    {"rules: >\n  a\n" + strings.Repeat("  \n", 100_000), "too many blank lines"},
		"documents":          {strings.Repeat("--- a\n", 100_000), "too many documents"},
		"classes":            {rulesWithPatterns(20, `^\pL{900}$`), "patterns up to here are too large"},
		"long line":          {"rules: [" + strings.Repeat("1,", 500_000) + "]", "a rule is 1, want a table"},
	} {
		_, err := rulefile.Parse("rules.yaml", []byte(c.src), nil)
		var faults fault.List
		if !errors.As(err, &faults) || len(faults) > 1000 || !strings.Contains(faults[0].Problem, c.want) {
			t.Errorf("%s: got %d faults, %.200v, want at most 1000 with %q", name, len(faults), err, c.want)
		}
	}
}

// What reading a file allocates grows with its size, and not with the square of it. The test is not parallel, because it counts
// what the process allocates.
func TestLongFilesAllocateInProportion(t *testing.T) {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, src := range map[string]string{
		"tables":           "rules: [{name: a, when: {x: [" + numbered("{k%d: v},", 10_000) + "]}, limit: 1, window: 1m}]",
		"unknown lists":    "lists: {" + numbered("l%d: {values: [a]}, ", 5000) + "}\nrules: [{name: a, when: {" + numbered("k%d: {in: none}, ", 5000) + "}, limit: 1, window: 1m}]",
		"unknown outcomes": "outcomes: {" + numbered("o%d: {status: 400}, ", 5000) + "}\nrules: [" + numbered("{name: a%d, limit: 1, window: 1m, then: none},\n", 2000) + "]",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := rulefile.Parse("rules.yaml", []byte(src), nil); err == nil {
			t.Errorf("%s: got no error", name)
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(src)); got > 1000 {
			t.Errorf("%s: got %d bytes for each of the file, want at most 1000", name, got)
		}
	}
}

// rulesWithPatterns returns a file with so many rules with a short pattern whose program is large.
func rulesWithPatterns(n int, pattern string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%d, when: {path: {match: '%s'}}, per: [user], limit: 5, window: 1h}\n", i, pattern)
	}
	return b.String()
}

// keysInLines returns a table of so many keys, one a line.
func keysInLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A file whose tables are not too large is read, however many of them there are.
func TestManyKeysAreRead(t *testing.T) {
	t.Parallel()
	src := "rules:\n" + strings.Repeat("  - name: a\n    per: [user]\n    limit:\n      by: plan\n      free: 1\n      pro: 2\n    window: 1h\n", 9000)
	_, err := rulefile.Parse("rules.yaml", []byte(src), nil)
	if err == nil || strings.Contains(err.Error(), "too many") {
		t.Errorf("got %.200v, want that names are there twice", err)
	}
	cases := strings.ReplaceAll(keysInLines(5000), "\n", "\n      ")
	_, err = rulefile.Parse("rules.yaml", []byte("rules:\n  - name: a\n    per: [user]\n    limit:\n      by: plan\n      "+cases+"\n    window: 1h\n"), nil)
	if err != nil {
		t.Errorf("got %.200v, want no error for 5000 cases", err)
	}
}

func TestFaultsAreBrief(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	for name, c := range map[string]struct{ src, want string }{
		"file":    {long, "want a table with keys such as rules:"},
		"name":    {"rules:\n  - {name: " + long + ", limt: 5}\n", "a letter or digit first"},
		"outcome": {"rules:\n  - {name: a, then: " + long + "}\n", "unknown outcome"},
	} {
		_, err := rulefile.Parse("rules.yaml", []byte(c.src), nil)
		var faults fault.List
		if !errors.As(err, &faults) {
			t.Fatalf("%s: got %.200v, want faults", name, err)
		}
		if got := faults[0].Error(); len(got) > 2000 || !strings.Contains(got, c.want) || !utf8.ValidString(got) {
			t.Errorf("%s: got %d bytes, %.200s, want at most 2000 with %q", name, len(got), got, c.want)
		}
	}
}
