package weir_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestArchitectureLists compares the list of folders in docs/explanation/architecture.md with
// the table of arrows: each package is in the list, once, and imports only packages
// further down.
func TestArchitectureLists(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/explanation/architecture.md")
	_, list, _ := strings.Cut(page, "```\n")
	list, prose, _ := strings.Cut(list, "```\n")
	line := map[string]int{}
	for i, text := range strings.Split(strings.TrimSpace(list), "\n") {
		folder := strings.Fields(text)[0]
		if line[folder] != 0 {
			t.Errorf("the list has %s twice", folder)
		}
		line[folder] = i + 1
	}
	// place returns the line of a package, or that of the nearest folder above it.
	place := func(pkg string) int {
		for folder := pkg; folder != "."; folder = filepath.ToSlash(filepath.Dir(folder)) {
			if line[folder] != 0 {
				return line[folder]
			}
		}
		if pkg == "." {
			return line["."]
		}
		return 0
	}
	for pkg, a := range arrows {
		from := place(pkg)
		if from == 0 {
			if top, _, _ := strings.Cut(pkg, "/"); !strings.Contains(prose, "`"+pkg+"`") && !strings.Contains(prose, "`"+top+"`") {
				t.Errorf("the page does not name %s", pkg)
			}
			continue
		}
		for _, imported := range a.ours {
			if to := place(imported); to < from {
				t.Errorf("%s, in line %d of the list, may import %s, in line %d", pkg, from, imported, to)
			}
		}
	}
	for folder := range line {
		if _, err := os.Stat(folder); err != nil {
			t.Errorf("the list has a folder that does not exist: %v", err)
		}
	}
}

// TestGoPage checks that docs/reference/go.md names each public package, and no other.
func TestGoPage(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/reference/go.md")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`…/([a-z0-9/]+)`").FindAllStringSubmatch(page, -1) {
		named[m[1]] = true
	}
	private := regexp.MustCompile(`(^|/)internal(/|$)|^(cmd|benchmarks|deploy|scripts)/|^\.$`)
	for pkg := range arrows {
		if !private.MatchString(pkg) && !named[pkg] {
			t.Errorf("the page does not name %s", pkg)
		}
	}
	for pkg := range named {
		if _, ok := arrows[pkg]; !ok {
			t.Errorf("the page names %s, which is no package", pkg)
		}
	}
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence = regexp.MustCompile("(?s)```.*?```")
	title = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinks follows each link from one page of the project to another, and to a
// heading in it.
func TestLinks(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/zh/*/*.md", "benchmarks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			if !strings.Contains(page, "node_modules") { // of make docs
				pages = append(pages, page)
			}
		}
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(readPage(t, page), ""), -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			target, heading, _ := strings.Cut(m[1], "#")
			to := page
			if target != "" {
				to = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if heading != "" && strings.HasSuffix(to, ".md") && !hasHeading(readPage(t, to), heading) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}

// TestPairs compares each page in Chinese with its English page: the headings have the
// same levels, the code is the same apart from comments, and so are the names and
// numbers in the tables. It prints the first difference only, because all that follow
// have another number.
func TestPairs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/zh/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string]string{"README.zh-CN.md": "README.md"}
	for _, page := range pages {
		pairs[page] = strings.Replace(page, "docs/zh/", "docs/", 1)
	}
	for page, english := range pairs {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			zh, en := readPage(t, page), readPage(t, english)
			same(t, "blocks of code", codeOf(zh), codeOf(en))
			same(t, "rows of tables", tablesOf(zh), tablesOf(en))
			same(t, "parts", levelsOf(zh), levelsOf(en))
			if !strings.Contains(zh, "](") {
				t.Error("the page has no link")
			}
		})
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%d and %d %s: number %d: got\n%s\nwant\n%s", len(got), len(want), what, i+1, got[i], want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d %s, want the %d of the English page", len(got), what, len(want))
	}
}

var comment = regexp.MustCompile(`(?m)[ \t]*#(?: .*)?$|[ \t]*// .*$`)

// codeOf returns the blocks of code of a page, without comments. Of a picture in
// Mermaid, whose words are translated, it returns the number of lines.
func codeOf(page string) []string {
	var list []string
	for _, block := range fence.FindAllString(page, -1) {
		if strings.HasPrefix(block, "```mermaid") {
			block = fmt.Sprintf("a picture of %d lines", strings.Count(block, "\n"))
		}
		list = append(list, comment.ReplaceAllString(block, ""))
	}
	return list
}

// levelsOf returns the level of each heading of a page.
func levelsOf(page string) []string {
	var list []string
	for _, m := range title.FindAllString(fence.ReplaceAllString(page, ""), -1) {
		level, _, _ := strings.Cut(m, " ")
		list = append(list, level)
	}
	return list
}

// TestAccuracyOfOthers compares the most that other limiters admit, in the README
// and in the comparison, with the table of docs/explanation/benchmarks.md. Rows with a * there
// come from the real clock and differ a little from run to run.
func TestAccuracyOfOthers(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(readPage(t, "docs/explanation/benchmarks.md"), "\n## Accuracy\n")
	table, _, _ = strings.Cut(table, "\n## ")
	// most returns the number in the row that starts with name, and how much it may
	// differ.
	most := func(name string) (largest, slack float64) {
		for _, text := range row.FindAllString(table, -1) {
			cells := strings.Split(text, "|")
			if !strings.HasPrefix(strings.TrimSpace(cells[1]), name) {
				continue
			}
			largest, err := strconv.ParseFloat(strings.TrimSpace(cells[2]), 64)
			if err != nil {
				t.Fatalf("row %s: %v", name, err)
			}
			if strings.Contains(cells[1], "*") {
				slack = 0.02
			}
			return largest, slack + 0.0005
		}
		t.Fatalf("docs/explanation/benchmarks.md has no row %s", name)
		return 0, 0
	}
	measured := map[string]string{
		"weir": "weir sliding, precision 100", "x/time/rate": "x/time/rate", "ulule/limiter": "ulule/limiter",
		"throttled": "throttled, map", "go-zero": "go-zero RollingWindow", "Sentinel": "Sentinel LeapArray",
	}
	for _, page := range []string{"README.md", "README.zh-CN.md", "docs/explanation/comparison.md"} {
		for limiter, name := range measured {
			cell := regexp.MustCompile(`(?m)^\| \**` + limiter + `[^|]*\| ((?:\**[0-9]|almost|接近)[^|]*)\|`).FindStringSubmatch(readPage(t, page))
			if cell == nil {
				if page == "docs/explanation/comparison.md" { // the READMEs have some of its rows
					t.Errorf("%s has no row %s", page, limiter)
				}
				continue
			}
			number, _, _ := strings.Cut(cell[1], "[") // a footnote
			text := strings.Trim(strings.TrimSpace(number), "* ")
			want, slack := most(name)
			got, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			switch {
			case strings.HasPrefix(text, "almost 2") || strings.HasPrefix(text, "接近 2"):
				if want < 1.8 || want >= 2 {
					t.Errorf("%s: %s admits %q, and docs/explanation/benchmarks.md has %v", page, limiter, text, want)
				}
			case err != nil || math.Abs(got-want) > slack:
				t.Errorf("%s: %s admits %q, and docs/explanation/benchmarks.md has %v", page, limiter, text, want)
			}
		}
	}
}

// TestSizing compares the numbers of docs/guides/sizing.md, which are rounded, with the results of
// the benchmarks.
func TestSizing(t *testing.T) {
	t.Parallel()
	page, results := readPage(t, "docs/guides/sizing.md"), readPage(t, "benchmarks/RESULTS.md")
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(strings.ReplaceAll(regexp.MustCompile(`[0-9][0-9,.]*`).FindString(text), ",", ""), 64)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		return n
	}
	// cell returns the number in a cell of the row that starts with name, of the first table below title.
	cell := func(page, title, name string, column int) float64 {
		_, table, _ := strings.Cut(page, title+"\n")
		for _, text := range row.FindAllString(table, -1) {
			if cells := strings.Split(text, " | "); strings.TrimPrefix(cells[0], "| ") == name && len(cells) > column {
				return number(cells[column])
			}
		}
		t.Errorf("got no row %q below %q", name, title)
		return 0
	}
	const goes, costs, interfaces = "## How far one instance goes, and what then", "## What a unit costs", "## CPU time of decisions, by interface"
	for _, c := range []struct {
		part, name string
		want       float64
	}{
		{goes, "library, a million keys, bucket", 1000 / cell(results, "### Several cores, a million keys, zipf", "weir bucket", 2)},
		{goes, "service, `POST /v1/take`, 32 connections", cell(results, interfaces, "HTTP, POST /v1/take", 4)},
		{goes, "service, takes on one gRPC stream", cell(results, "## Takes over gRPC, beside a gRPC handler that does nothing", "weir, one stream", 1)},
		{goes, "library over one Redis, 64 callers, sliding", cell(results, "## Over Redis", "weir sliding", 2)},
		{costs, "memory: one key (a bucket, a fixed window, or a sliding one with up to three hits)", cell(results, "## A million keys in memory", "weir fixed", 8)},
		{costs, "CPU: a decision of one rule in the library", cell(results, interfaces, "library, Engine with one rule", 1)},
		{costs, "CPU: a take over HTTP", cell(results, interfaces, "HTTP, POST /v1/take", 1)},
		{costs, "CPU of weir: a take over HTTP, with Redis", cell(results, interfaces, "HTTP, POST /v1/take, over Redis", 1)},
		{costs, "CPU of Redis: the same take", cell(results, interfaces, "HTTP, POST /v1/take, over Redis", 2)},
	} {
		if got := cell(page, c.part, c.name, 1); math.Abs(got-c.want) > 0.1*c.want {
			t.Errorf("%s: got %v, and the results have %v", c.name, got, c.want)
		}
	}
}

var (
	row    = regexp.MustCompile(`(?m)^\|.*\|$`)
	quoted = regexp.MustCompile("`[^`]+`")
)

// tablesOf returns for each row of the tables of a page the number of its cells,
// and the code in them.
func tablesOf(page string) []string {
	var list []string
	for _, text := range row.FindAllString(fence.ReplaceAllString(page, ""), -1) {
		code := quoted.FindAllString(text, -1)
		slices.Sort(code)
		list = append(list, fmt.Sprint(strings.Count(text, " |"), slices.Compact(code)))
	}
	return list
}

// hasHeading reports whether page has anchor: that of a heading on GitHub, or one
// of its own.
func hasHeading(page, anchor string) bool {
	if strings.Contains(page, `<a id="`+anchor+`">`) {
		return true
	}
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if slug == anchor {
			return true
		}
	}
	return false
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
