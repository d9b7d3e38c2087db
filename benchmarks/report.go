package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
)

// table is one table of the document, with its explanations.
type table struct {
	Title, text string   // text is a paragraph before the table
	chart       string   // an image's path, relative to the document; may be empty
	head        []string // the first column names the rows
	rows        [][]string
	notes       []string // below the table
	more        []*table // that belong to it, below the notes
}

// newTable returns a table with the title and the text of a section.
func (s settings) newTable(section string, head ...string) *table {
	title, text, _ := strings.Cut(s.render(section, nil), "\n\n")
	return &table{Title: title, text: text, head: head}
}

func (t *table) row(name string, cells ...string) {
	t.rows = append(t.rows, append([]string{name}, cells...))
}

// String returns t as Markdown.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s\n", t.Title, t.text)
	if t.chart != "" {
		fmt.Fprintf(&b, "\n![%s](%s)\n", t.Title, t.chart)
	}
	if len(t.rows) > 0 {
		fmt.Fprintf(&b, "\n| %s |\n|---|%s\n", strings.Join(t.head, " | "), strings.Repeat("--:|", len(t.head)-1))
	}
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	if len(t.notes) > 0 {
		fmt.Fprintf(&b, "\n- %s\n", strings.Join(t.notes, "\n- "))
	}
	for _, more := range t.more {
		b.WriteString(strings.Replace(more.String(), "##", "###", 1))
	}
	return b.String()
}

// row is one row that is measured.
type row struct {
	name, note string
	bold       bool   // ratios refer to it
	class      string // its colour in charts; empty: it is in none
	measure    func() measure.Numbers
}

// rowOf returns the row of a peer.
func rowOf(p peer.Peer, f func() measure.Numbers) row {
	class := "peer"
	switch {
	case p.IsOurs():
		class = "ours"
	case p.IsRaw() && !p.Keys: // part of a limiter
		class = ""
	case p.IsRaw():
		class = "raw"
	}
	return row{name: p.Name, note: p.Note, bold: p.Reference, class: class, measure: f}
}

// column is one column of the numbers of all rows.
type column struct {
	head string // empty: the column is not shown
	key  string // under which its numbers are kept; empty: they are not
	show func(float64) string
	of   func(g *grid, i int) float64 // the number of row i
}

// grid has the numbers of the rows of a section.
type grid struct {
	section string
	rows    []row
	numbers []measure.Numbers
}

// at shows number n of a row.
func at(n int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 { return g.numbers[i][n] }
}

// by shows number n of a row divided by that of the row in bold.
func by(n int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 { return g.numbers[i][n] / g.bold()[n] }
}

// to shows number n of a row divided by that of another row.
func to(other string, n int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 { return g.numbers[i][n] / g.row(other)[n] }
}

// gain shows number n of a row divided by its number m.
func gain(n, m int) func(*grid, int) float64 {
	return func(g *grid, i int) float64 { return g.numbers[i][n] / g.numbers[i][m] }
}

// row returns the numbers of a row, and bold those of the row that ratios refer to.
func (g *grid) row(name string) measure.Numbers {
	return g.numbers[slices.IndexFunc(g.rows, func(r row) bool { return r.name == name })]
}

func (g *grid) bold() measure.Numbers {
	return g.numbers[slices.IndexFunc(g.rows, func(r row) bool { return r.bold })]
}

// measure measures rows in turns.
func (s settings) measure(section string, rounds int, rows []row) *grid {
	var jobs []func() measure.Numbers
	for _, r := range rows {
		jobs = append(jobs, func() (n measure.Numbers) {
			if err := measure.Try(func() { n = r.measure() }); err != nil {
				measure.Check(fmt.Errorf("%s: %w", r.name, err))
			}
			return n
		})
	}
	return &grid{section, rows, measure.Rounds(rounds, jobs)}
}

// table makes a table, and keeps its numbers for the page.
func (g *grid) table(s settings, columns []column) *table {
	t := s.newTable(g.section, "")
	for _, c := range columns {
		if c.head != "" {
			t.head = append(t.head, c.head)
		}
	}
	for i, r := range g.rows {
		name, cells := r.name, []string(nil)
		if r.bold {
			name = "**" + name + "**"
		}
		for _, c := range columns {
			n := c.of(g, i)
			if c.head != "" {
				cells = append(cells, c.show(n))
			}
			if c.key != "" {
				s.found[cell{g.section, r.name, c.key}] = n
			}
		}
		t.row(name, cells...)
		if r.note != "" {
			t.notes = append(t.notes, r.name+": "+r.note+".")
		}
	}
	return t
}

// chart draws a chart of the numbers in a column of all rows with a class.
func (g *grid) chart(s settings, file string, c chart, of func(*grid, int) float64) string {
	for i, r := range g.rows {
		if r.class != "" {
			c.bars = append(c.bars, bar{r.name, r.class, []float64{of(g, i)}})
		}
	}
	return s.draw(file, c)
}

// number formats n with three digits, or returns a dash for NaN.
func number(n float64) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return "–"
	case n >= 1000:
		s := fmt.Sprintf("%.0f", n)
		for at := len(s) - 3; at > 0; at -= 3 {
			s = s[:at] + "," + s[at:]
		}
		return s
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.2f", n), ".00"), ".0")
}

// whole formats n without a fraction.
func whole(n float64) string { return number(math.Round(n)) }

// fixed returns a function that formats numbers, or returns a dash for NaN.
func fixed(format string) func(float64) string {
	return func(n float64) string {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return "–"
		}
		return fmt.Sprintf(format, n)
	}
}

// The formats of ratios, and of ratios that are marked as such.
var (
	ratio    = fixed("%.2f")
	multiple = fixed("%.2f×")
	thrice   = fixed("%.3f")
)

// share formats a part of 1 as a percentage.
func share(n float64) string {
	if p := 100 * n; p > 0 && p < 1 {
		return fmt.Sprintf("%.2f %%", p)
	}
	return fixed("%.0f %%")(100 * n)
}

// timing formats nanoseconds in a suitable unit.
func timing(ns float64) string {
	switch d := time.Duration(ns); {
	case math.IsNaN(ns):
		return "–"
	case d < time.Microsecond:
		return number(ns) + " ns"
	case d < time.Millisecond:
		return number(ns/1e3) + " µs"
	default:
		return number(ns/1e6) + " ms"
	}
}

//go:embed page.md.tmpl
var pageText string

// render returns a part of the template: the page, the results, or the title and the text of a section. The functions
// of the template take sections, rows and columns.
func (s settings) render(part string, data any) string {
	f := s.found
	t := template.New("page").Funcs(template.FuncMap{
		"at":    f.at,
		"n":     func(section, row, column string) string { return number(f.at(section, row, column)) },
		"ratio": ratio, "thrice": thrice, "timing": timing,
		"worst": f.worst, "faster": f.faster, "accuracy": f.accuracy,
		"keys": counted(s.keys), "grown": counted(s.grown), "arrivals": counted(s.arrivals), "lines": counted(s.lines),
		"pointers": func(by float64) string { return number(by * float64(s.pointers)) },
		"cores":    runtime.NumCPU, "few": s.few, "slice": func(n int) time.Duration { return time.Duration(n) * s.slice },
		"settle": func() time.Duration { return s.settle }, "open": func() time.Duration { return s.open },
		"window": func() time.Duration { return s.window }, "light": func() time.Duration { return s.light },
		"anchor": func(title string) string {
			return strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(title))
		},
	})
	var b strings.Builder
	measure.Check(template.Must(t.Parse(pageText)).ExecuteTemplate(&b, part, data))
	return b.String()
}

func counted(n int) func() string { return func() string { return number(float64(n)) } }

// accuracy returns the rows of the page's table about accuracy: the most that each limiter admits over all traces, and
// what the last two columns of the table of results say.
func (f found) accuracy(tables []*table) (rows []string) {
	for _, t := range tables {
		if t.Title != "Accuracy" {
			continue
		}
		for _, row := range t.rows {
			over := thrice(f.at("accuracy", strings.TrimSuffix(row[0], " *"), "over"))
			rows = append(rows, strings.Join(append([]string{row[0], over}, row[len(row)-2:]...), " | "))
		}
	}
	return rows
}

// worst returns the most that a limiter other than weir admits.
func (f found) worst() float64 {
	worst := 0.0
	for _, p := range peer.Accuracy() {
		if !p.IsOurs() {
			worst = max(worst, f.at("accuracy", p.Name, "over"))
		}
	}
	return worst
}

// faster returns the other limiters that take less time than a row.
func (f found) faster(section, column, row string) string {
	ns := func(p peer.Peer) float64 { return f.at(section, p.Name, column) }
	faster := slices.DeleteFunc(peer.Hot(), func(p peer.Peer) bool {
		return p.Kind == peer.Cost || p.IsRaw() || p.IsOurs() || !(ns(p) < f.at(section, row, column))
	})
	slices.SortFunc(faster, func(a, b peer.Peer) int { return cmp.Compare(ns(a), ns(b)) })
	var names []string
	for _, p := range faster {
		names = append(names, fmt.Sprintf("%s (%s)", p.Name, number(ns(p))))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// timeFormat is the format of a run's name in the page and its pictures.
const timeFormat = "2006-01-02 15:04:05 UTC"

// facts returns what the page says about a run: where it was, when, and what was measured.
func (s settings) facts(tables []*table) map[string]any {
	const cpu = "/sys/devices/system/cpu/cpu0/"
	siblings := firstLine(cpu + "topology/thread_siblings_list")
	var caches []string
	indexes, _ := filepath.Glob(cpu + "cache/index*") // the pattern is right
	for _, index := range indexes {
		if firstLine(index+"/type") != "Instruction" {
			caches = append(caches, "L"+firstLine(index+"/level")+" "+firstLine(index+"/size"))
		}
	}
	var kilobytes float64
	_, _ = fmt.Sscanf(firstLine("/proc/meminfo"), "MemTotal: %f", &kilobytes) // 0 where the system does not tell
	processor := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(text), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		processor = strings.Trim(line, " \t:")
	}
	var versions []string // of the measured modules
	modules := peer.Modules()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch {
			case !slices.Contains(modules, m.Path):
			case m.Replace != nil || m.Version == "(devel)" || m.Version == "":
				versions = append(versions, m.Path+" of this tree")
			default:
				versions = append(versions, m.Path+" "+m.Version)
			}
		}
	}
	return map[string]any{
		"Tables": tables, "Run": s.run, "Date": s.began.UTC().Format("2 January 2006"), "Took": time.Since(s.began).Round(time.Second), "Command": s.command,
		"Processor": processor, "Threads": 1 + strings.Count(siblings, ",") + strings.Count(siblings, "-"), "Caches": strings.Join(caches, ", "),
		"Memory": fmt.Sprintf("%.0f GB", kilobytes/1024/1024), "OS": runtime.GOOS + "/" + runtime.GOARCH, "Kernel": firstLine("/proc/sys/kernel/osrelease"),
		"Go": runtime.Version(), "Redis": measure.RedisVersion(), "Rounds": s.rounds, "Nice": strings.Fields(firstLine("/proc/self/stat") + strings.Repeat(" unknown", 19))[18],
		"Before": s.before, "After": load(), "Versions": strings.Join(versions, ", "),
	}
}

// load returns the load of the last minute.
func load() string { return strings.Fields(firstLine("/proc/loadavg") + " unknown")[0] }

// firstLine returns the first line of a file of the system, or nothing.
func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// chart is a chart of horizontal bars. The best comes first, unless given. A bar that is far longer than most is
// cut, and marked.
type chart struct {
	title   string
	unit    string   // after each number, including the blank
	mark    float64  // the right value, drawn as a line if above 0
	longest bool     // the longest bar is the best; otherwise the shortest
	given   bool     // the bars stay in their order
	series  []string // the names of each bar's values, if it has several
	show    func(float64) string
	bars    []bar
}

// bar is one value, or one for each series of its chart.
type bar struct {
	label, class string // the class is ours, peer or raw
	values       []float64
}

// shape is a text, or a rectangle.
type shape struct {
	Class, Text    string
	X              float64
	Y              int
	Width, Opacity float64
	Height         int
}

// svgText has no background, and follows the reader's colour scheme, so that pictures fit light and dark pages.
//
//go:embed chart.svg.tmpl
var svgText string

// svg returns c as an SVG image. run marks the run that the numbers are from.
func (c *chart) svg(run string) string {
	const left, right, top = 330, 790, 68 // of the bars
	bars := slices.Clone(c.bars)
	if !c.given {
		slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.values[0], b.values[0]) })
	}
	if c.longest && !c.given {
		slices.Reverse(bars)
	}
	thick, gap, below, class, down := 18, 6, 0, "text", 14
	if n := len(c.series); n > 0 {
		thick, gap, below, class, down = 10, 2, 8, "small", 6*n+4
	}
	var shapes []shape
	legend, x := c.legend(), 8
	for _, l := range legend {
		shapes = append(shapes, shape{Class: l.class, X: float64(x), Y: 36, Width: 12, Height: 12, Opacity: l.values[0]}, shape{Class: "key", Text: l.label, X: float64(x + 17), Y: 47})
		x += 35 + 8*len([]rune(l.label))
	}
	y, most := top, c.most()
	scale := (right - left) / most
	for _, b := range bars {
		shapes = append(shapes, shape{Class: "label", Text: b.label, X: left - 8, Y: y + down})
		for n, v := range b.values {
			length, text := max(1, min(v, most)*scale), c.show(v)+c.unit
			if v > most {
				text = "» " + text
			}
			shapes = append(shapes, shape{Class: b.class, X: left, Y: y, Width: length, Height: thick, Opacity: shade(n, len(b.values))},
				shape{Class: class, Text: text, X: left + length + 6, Y: y + thick/2 + 4 + thick/18})
			y += thick + gap
		}
		y += below
	}
	data := map[string]any{"Title": c.title, "Run": run, "Height": y + 8, "Shapes": shapes, "Mark": 0.0}
	if c.mark > 0 {
		data["Mark"] = left + c.mark*scale
	}
	var s strings.Builder
	measure.Check(template.Must(template.New("chart").Parse(svgText)).Execute(&s, data))
	return s.String()
}

// shade returns the opacity of series n of all.
func shade(n, all int) float64 { return 0.4 + 0.6*float64(n+1)/float64(all) }

// most returns the longest length to draw: that of the longest bar, at most three times that of the median.
func (c *chart) most() float64 {
	var values []float64
	for _, b := range c.bars {
		values = append(values, b.values...)
	}
	slices.Sort(values)
	longest, middle := slices.Max(values), values[len(values)/2]
	if middle > 0 && !c.longest {
		longest = min(longest, 3*middle)
	}
	return max(longest, c.mark, 1e-9)
}

// legend returns the meaning of the colours, unless there is one only, and of the shades, each with its opacity.
func (c *chart) legend() (legend []bar) {
	for _, l := range []bar{{"weir", "ours", []float64{1}}, {"peers", "peer", []float64{1}}, {"raw costs", "raw", []float64{1}}} {
		if slices.ContainsFunc(c.bars, func(b bar) bool { return b.class == l.class }) {
			legend = append(legend, l)
		}
	}
	if len(legend) == 1 {
		legend = nil
	}
	for n, name := range c.series {
		legend = append(legend, bar{name, "peer", []float64{shade(n, len(c.series))}})
	}
	return legend
}
