package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/benchmarks/report"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := report.Table{Title: "Speed", Text: "Of things.", Head: []string{"", "ns"}, Notes: []string{"a note."}}
	table.Row(report.Bold("raw"), report.Number(12345.4))
	var b strings.Builder
	table.Write(&b)
	want := "\n## Speed\n\nOf things.\n\n|  | ns |\n|---|--:|\n| **raw** | 12,345 |\n\n- a note.\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{report.Number(0), "0"},
		{report.Number(1.234), "1.23"},
		{report.Number(12.34), "12.3"},
		{report.Number(123.4), "123"},
		{report.Number(1_234_567), "1,234,567"},
		{report.Ratio(1), "1.00"},
		{report.Share(0.004), "0.40 %"},
		{report.Share(1), "100 %"},
		{report.Time(999), "999 ns"},
		{report.Time(1500), "1.50 µs"},
		{report.Time(2e6), "2 ms"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestChartIsXML(t *testing.T) {
	t.Parallel()
	c := report.Chart{Title: "a < b & c", Mark: 1, Bars: []report.Bar{{Label: `"x"`, Value: 2, Text: "2", Ours: true}, {Label: "y"}}}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
	}
}

// A chart with series draws a bar for each of them, and names them.
func TestChartSeries(t *testing.T) {
	t.Parallel()
	c := report.Chart{
		Title: "cores", Longest: true, Given: true, Series: []string{"one core", "two cores"}, Run: "run of today",
		Bars: []report.Bar{
			{Label: "small", Value: 1, Values: []float64{1, 2}, Texts: []string{"1 M", "2 M"}, Ours: true},
			{Label: "large", Value: 9, Values: []float64{9, 18}, Texts: []string{"9 M", "18 M"}, Raw: true},
		},
	}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"<desc>run of today</desc>", ">weir<", ">raw costs<", ">one core<", ">two cores<", ">small<", ">1 M<", ">2 M<", ">large<", ">9 M<", ">18 M<",
	} {
		i := strings.Index(b.String()[at:], want)
		if i < 0 {
			t.Fatalf("got no %s behind the others in %s", want, b.String())
		}
		at += i
	}
}

// The best comes first: the shortest bar, or the longest.
func TestChartOrder(t *testing.T) {
	t.Parallel()
	for _, longest := range []bool{false, true} {
		c := report.Chart{Longest: longest, Bars: []report.Bar{{Label: "few", Value: 1}, {Label: "many", Value: 2}}}
		var b strings.Builder
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Index(b.String(), ">many<") < strings.Index(b.String(), ">few<"); got != longest {
			t.Errorf("longest %v: got many first %v", longest, got)
		}
	}
}
