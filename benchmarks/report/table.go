// Package report writes results: Markdown, and charts as SVG.
package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Table is one table of the document, with its explanations.
type Table struct {
	Title string
	Text  string   // a paragraph before the table
	Chart string   // an image's path, relative to the document; may be empty
	Head  []string // the first column names the rows
	Rows  [][]string
	Notes []string // below the table
	More  []*Table // that belong to it, below the notes
}

// Row adds a row.
func (t *Table) Row(name string, cells ...string) {
	t.Rows = append(t.Rows, append([]string{name}, cells...))
}

// Write writes t as Markdown.
func (t *Table) Write(w io.Writer) { t.write(w, "##") }

// write writes t with the given mark before its title.
func (t *Table) write(w io.Writer, mark string) {
	fmt.Fprintf(w, "\n%s %s\n\n%s\n", mark, t.Title, t.Text)
	if t.Chart != "" {
		fmt.Fprintf(w, "\n![%s](%s)\n", t.Title, t.Chart)
	}
	if len(t.Rows) > 0 {
		fmt.Fprintf(w, "\n| %s |\n|---|%s\n", strings.Join(t.Head, " | "), strings.Repeat("--:|", len(t.Head)-1))
	}
	for _, row := range t.Rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	if len(t.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(w, "- %s\n", note)
	}
	for _, more := range t.More {
		more.write(w, mark+"#")
	}
}

// Bold marks the row that ratios refer to.
func Bold(s string) string { return "**" + s + "**" }

// Number formats n with three digits, or returns a dash for NaN.
func Number(n float64) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return "–"
	case n >= 1000:
		return thousands(int64(math.Round(n)))
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return trim(fmt.Sprintf("%.1f", n))
	}
	return trim(fmt.Sprintf("%.2f", n))
}

// Ratio formats n with two decimals, or returns a dash for NaN.
func Ratio(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "–"
	}
	return fmt.Sprintf("%.2f", n)
}

// Share formats a part of 1 as a percentage.
func Share(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "–"
	}
	if p := 100 * n; p > 0 && p < 1 {
		return fmt.Sprintf("%.2f %%", p)
	}
	return fmt.Sprintf("%.0f %%", 100*n)
}

// Time formats nanoseconds in a suitable unit.
func Time(ns float64) string {
	switch d := time.Duration(ns); {
	case math.IsNaN(ns):
		return "–"
	case d < time.Microsecond:
		return Number(ns) + " ns"
	case d < time.Millisecond:
		return Number(ns/1e3) + " µs"
	default:
		return Number(ns/1e6) + " ms"
	}
}

// trim removes a fraction of zeros.
func trim(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, ".00"), ".0") }

// thousands inserts commas between groups of digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
