package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
)

const (
	pageFile    = "../docs/explanation/benchmarks.md"
	resultsFile = "RESULTS.md"
)

// TestPage makes the page and the results in a quick run and compares them with those
// that are committed: all that does not depend on the machine must be equal. So titles,
// rows, columns, explanations and notes are those of the program.
func TestPage(t *testing.T) { // not parallel: it measures the heap of the process
	if testing.Short() {
		t.Skip("measures every row, which takes minutes: make peers")
	}
	for program, required := range map[string]string{"redis-server": "WEIR_REQUIRE_REDIS", "redis-benchmark": "WEIR_REQUIRE_REDIS", "wrk": "WEIR_REQUIRE_PROGRAMS"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv(required) != "1" {
			t.Skip("install " + program + " to run this test: the page has its rows")
		}
	}
	pgtest.Server(t) // skips if there is none
	folder := t.TempDir()
	page, results := filepath.Join(folder, "benchmarks.md"), filepath.Join(folder, "RESULTS.md")
	if err := run([]string{"-quick", "-images", filepath.Join(folder, "images"), "-page", page, "-results", results}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	compareWhole(t, pageFile, read(t, page), 3)
	compareWhole(t, resultsFile, read(t, results), len(sections())+1)
}

// compareWhole compares a committed file with what a quick run has made, which has titles.
func compareWhole(t *testing.T, file, made string, titles int) {
	t.Helper()
	if strings.Contains(made, "NaN") || strings.Contains(made, "Inf") {
		t.Errorf("got numbers that are none for %s", file)
	}
	if got := strings.Count(made, "\n## "); got != titles {
		t.Errorf("got %d titles for %s, want %d", got, file, titles)
	}
	got, want := skeleton(read(t, file)), skeleton(made)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s is not what make bench-peers writes, from this line on:\n got %s\nwant %s", file, lineAt(got, i), lineAt(want, i))
		}
	}
}

// The page is short, and its table about accuracy and its run are those of the results.
func TestPageFitsResults(t *testing.T) {
	t.Parallel()
	page, results := read(t, pageFile), read(t, resultsFile)
	if n := strings.Count(page, "\n"); n > 120 {
		t.Errorf("the page has %d lines, want at most 120", n)
	}
	run := regexp.MustCompile(`(?m)^One run of .* take turns\.`)
	if got, want := run.FindString(page), run.FindString(results); got != want || got == "" {
		t.Errorf("the page has %q, the results %q", got, want)
	}
	_, table, _ := strings.Cut(results, "\n## Accuracy\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-zA-Z][^|]*) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		rows++
		cells := strings.Split(m[2], " | ")
		over := slices.Max(cells[:len(cells)-2]) // all have one digit in front
		want := "\n| " + strings.Join(append([]string{m[1], over}, cells[len(cells)-2:]...), " | ") + " |\n"
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks the row%s", want)
		}
	}
	if rows < 10 {
		t.Errorf("got %d rows about accuracy", rows)
	}
}

// The pictures of the page are from its run, and show what the program draws.
func TestPictures(t *testing.T) {
	t.Parallel()
	page := read(t, pageFile)
	run := regexp.MustCompile(`(?m)^- run: (.* UTC), `).FindStringSubmatch(read(t, "RESULTS.md"))
	if run == nil {
		t.Fatal("got results without the time of their run")
	}
	for _, name := range []string{"hot", "million", "cores", "accuracy", "redis", "interfaces"} {
		if !strings.Contains(page, "](../images/"+name+".svg)") {
			t.Errorf("got a page without %s.svg", name)
		}
		if !strings.Contains(read(t, "../docs/images/"+name+".svg"), "<desc>run of "+run[1]+"</desc>") {
			t.Errorf("%s.svg is not from the run of %s", name, run[1])
		}
	}
	files, err := filepath.Glob("../docs/images/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	readme := read(t, "../README.md")
	for _, f := range files {
		name := filepath.Base(f)
		if !strings.Contains(page, "](../images/"+name+")") && !strings.Contains(readme, "](docs/images/"+name+")") {
			t.Errorf("%s is on no page", f)
		}
	}
}

// A page needs all sections, and a run that fails leaves the old page.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run([]string{"-quick", "-only", "hot", "-page", file, "-results", file + ".results"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-page needs all sections") {
		t.Errorf("got error %v, want one that names the flag", err)
	}
	if got := read(t, file); got != "old" {
		t.Errorf("got page %q, want the old one", got)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "the end"
}

var (
	digits  = regexp.MustCompile(`-?[0-9][0-9.,]*( ?(ns|µs|ms|s|MB|GB|%|×))?\b`)
	machine = regexp.MustCompile(`(?m)(^Versions: ).*|(^- [a-zA-Z ]+: ).*`)
)

// skeleton returns the lines of a page without all that differs from run to run: of a
// row the name and the number of cells, of a fact of the machine its name, of other
// lines the text without numbers.
func skeleton(page string) []string {
	body, facts, _ := strings.Cut(page, "## The machine and the versions")
	var lines []string
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "`make bench-peers` has written"):
			line = "the head"
		case strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "|  |"):
			cells := strings.Split(line, "|")
			line = cells[1] + strings.Repeat("|", len(cells)-1)
		case strings.Contains(line, ". Faster are: "):
			line, _, _ = strings.Cut(line, ". Faster are: ")
		}
		lines = append(lines, digits.ReplaceAllString(line, "#"))
	}
	for line := range strings.Lines(machine.ReplaceAllString(facts, "$1$2")) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
