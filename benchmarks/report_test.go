package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	more := &table{Title: "More", text: "Things.", head: []string{""}}
	tab := &table{Title: "Speed", text: "Of things.", head: []string{"", "ns"}, notes: []string{"a note."}, more: []*table{more}}
	tab.row("raw", number(12345.4))
	want := "\n## Speed\n\nOf things.\n\n|  | ns |\n|---|--:|\n| raw | 12,345 |\n\n- a note.\n\n### More\n\nThings.\n"
	if got := tab.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{number(0), "0"},
		{number(1.234), "1.23"},
		{number(12.34), "12.3"},
		{number(123.4), "123"},
		{number(1_234_567), "1,234,567"},
		{ratio(1), "1.00"},
		{share(0.004), "0.40 %"},
		{share(1), "100 %"},
		{timing(999), "999 ns"},
		{timing(1500), "1.50 µs"},
		{timing(2e6), "2 ms"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestChartIsXML(t *testing.T) {
	t.Parallel()
	c := chart{title: "a < b & c", mark: 1, show: number, bars: []bar{{`"x"`, "ours", []float64{2}}, {"y", "peer", []float64{0}}}}
	text := c.svg("today")
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}

// A chart with series draws a bar for each of them, and names them.
func TestChartSeries(t *testing.T) {
	t.Parallel()
	c := chart{title: "cores", unit: " M", longest: true, given: true, series: []string{"one core", "two cores"}, show: number, bars: []bar{
		{"small", "ours", []float64{1, 2}}, {"large", "raw", []float64{9, 18}},
	}}
	text, at := c.svg("run of today"), 0
	for _, want := range []string{
		"<desc>run of today</desc>", ">weir<", ">raw costs<", ">one core<", ">two cores<", ">small<", ">1 M<", ">2 M<", ">large<", ">9 M<", ">18 M<",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("got no %s behind the others in %s", want, text)
		}
		at += i
	}
}

// The best comes first: the shortest bar, or the longest.
func TestChartOrder(t *testing.T) {
	t.Parallel()
	for _, longest := range []bool{false, true} {
		c := chart{longest: longest, show: number, bars: []bar{{"few", "peer", []float64{1}}, {"many", "peer", []float64{2}}}}
		text := c.svg("")
		if got := strings.Index(text, ">many<") < strings.Index(text, ">few<"); got != longest {
			t.Errorf("longest %v: got many first %v", longest, got)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns []float64
		want  string
	}{{[]float64{0, 0, 0}, "0"}, {[]float64{3, 0, 1}, "0 to 3"}, {[]float64{256, 257, 256}, "256 to 257"}} {
		if got := span(c.turns, number, " to ", ""); got != c.want {
			t.Errorf("%v: got %q, want %q", c.turns, got, c.want)
		}
	}
	if got := span([]float64{0.46, 0}, share, "–", " %"); got != "0–46 %" {
		t.Errorf("got %q, want 0–46 %%", got)
	}
}
