package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Chart is a chart of horizontal bars. The best comes first, unless Given. A bar that is far longer
// than most is cut, and marked.
type Chart struct {
	Title   string
	Unit    string   // after each number, including the blank
	Mark    float64  // the right value, drawn as a line if above 0
	Longest bool     // the longest bar is the best; otherwise the shortest
	Given   bool     // the bars stay in their order
	Series  []string // the names of each bar's Values, if it has several
	Run     string   // marks the run that the numbers are from
	Bars    []Bar
}

// Bar is one value, or one for each series of its chart.
type Bar struct {
	Label  string
	Value  float64 // determines the order
	Text   string  // the label at its end
	Values []float64
	Texts  []string
	Ours   bool // weir's own
	Raw    bool // a cost that bounds all others
}

const (
	chartWidth = 880
	labelWidth = 330
	barHeight  = 18
	barStep    = 24
	thinHeight = 10
	thinStep   = 12
	valueWidth = 90
	sideMargin = 24 // for labels in wider fonts
	topMargin  = 68
)

// chartStyle makes the picture fit light and dark pages: it has no background, and
// follows the reader's colour scheme.
const chartStyle = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.small { font-size: 10px }
.peer { fill: #8c959f } .raw { fill: #bf8700 } .ours { fill: #0969da }
.mark { stroke: #cf222e; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .peer { fill: #6e7681 } .raw { fill: #d29922 } .ours { fill: #4493f8 }
  .mark { stroke: #f85149 }
}
`

// Write writes c as an SVG image.
func (c *Chart) Write(w io.Writer) error {
	bars := slices.SortedStableFunc(slices.Values(c.Bars), func(a, b Bar) int {
		switch {
		case c.Given:
			return 0
		case c.Longest:
			return cmp.Compare(b.Value, a.Value)
		}
		return cmp.Compare(a.Value, b.Value)
	})
	most := c.most(bars)
	scale := (chartWidth - labelWidth - valueWidth) / most
	step := barStep
	if len(c.Series) > 0 {
		step = len(c.Series)*thinStep + 8
	}
	height := topMargin + len(bars)*step + 8

	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d 0 %d %d" width="%d" role="img" aria-label="%s">`+"\n",
		-sideMargin, chartWidth+2*sideMargin, height, chartWidth, escape(c.Title))
	if c.Run != "" {
		fmt.Fprintf(&s, "<desc>%s</desc>\n", escape(c.Run))
	}
	fmt.Fprintf(&s, "<style>%s</style>\n", chartStyle)
	fmt.Fprintf(&s, `<text class="title" x="8" y="22">%s</text>`+"\n", escape(c.Title))
	c.legend(&s)
	for i, b := range bars {
		y := topMargin + i*step
		middle := y + barHeight/2 + 5
		if len(c.Series) > 0 {
			middle = y + len(c.Series)*thinStep/2 + 4
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, middle, escape(b.Label))
		if len(c.Series) == 0 {
			c.bar(&s, b.class(), b.Value, most, scale, y, barHeight, 1, b.Text, "")
		}
		for n, v := range b.Values {
			c.bar(&s, b.class(), v, most, scale, y+n*thinStep, thinHeight, shade(n, len(b.Values)), b.Texts[n], "small")
		}
	}
	if c.Mark > 0 {
		x := labelWidth + c.Mark*scale
		fmt.Fprintf(&s, `<line class="mark" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", x, x, topMargin-6, height-6)
	}
	s.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}

// bar draws one bar and its number.
func (c *Chart) bar(s *strings.Builder, class string, value, most, scale float64, y, height int, opacity float64, text, size string) {
	length := max(1, min(value, most)*scale)
	if value > most {
		text = "» " + text
	}
	fmt.Fprintf(s, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2" opacity="%.2f"/>`, class, labelWidth, y, length, height, opacity)
	fmt.Fprintf(s, `<text class="%s" x="%.1f" y="%d">%s%s</text>`+"\n", size, labelWidth+length+6, y+height/2+4+height/18, escape(text), escape(c.Unit))
}

// shade returns the opacity of series n.
func shade(n, all int) float64 { return 0.4 + 0.6*float64(n+1)/float64(max(1, all)) }

// most returns the longest length to draw: that of the longest bar, at most three
// times that of the median.
func (c *Chart) most(sorted []Bar) float64 {
	var values []float64
	for _, b := range sorted {
		values = append(append(values, b.Values...), b.Value)
	}
	if len(values) == 0 {
		return 1
	}
	slices.Sort(values)
	longest, middle := values[len(values)-1], values[len(values)/2]
	if middle > 0 && !c.Longest {
		longest = min(longest, 3*middle)
	}
	return max(longest, c.Mark, 1e-9)
}

// legend draws the meaning of the colours and of the shades below the title.
func (c *Chart) legend(s *strings.Builder) {
	x := 8
	add := func(class, label string, opacity float64) {
		fmt.Fprintf(s, `<rect class="%s" x="%d" y="36" width="12" height="12" rx="2" opacity="%.2f"/>`, class, x, opacity)
		fmt.Fprintf(s, `<text x="%d" y="47">%s</text>`+"\n", x+17, escape(label))
		x += 17 + 8*len([]rune(label)) + 18
	}
	all := c.Bars
	if !slices.ContainsFunc(all, func(b Bar) bool { return b.class() != all[0].class() }) {
		all = nil // one colour needs no explanation
	}
	for _, b := range []Bar{{Label: "weir", Ours: true}, {Label: "peers"}, {Label: "raw costs", Raw: true}} {
		if slices.ContainsFunc(all, func(other Bar) bool { return other.class() == b.class() }) {
			add(b.class(), b.Label, 1)
		}
	}
	for n, name := range c.Series {
		add("peer", name, shade(n, len(c.Series)))
	}
}

func (b Bar) class() string {
	switch {
	case b.Ours:
		return "ours"
	case b.Raw:
		return "raw"
	}
	return "peer"
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder returns no error
	return b.String()
}
