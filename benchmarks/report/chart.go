package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Chart is a chart of horizontal bars. The shortest is the best and comes first.
// A bar that is far longer than most is cut, and marked.
type Chart struct {
	Title string
	Unit  string  // after each number, including the blank
	Mark  float64 // the right value, drawn as a line if above 0
	Bars  []Bar
}

// Bar is one value.
type Bar struct {
	Label string
	Value float64
	Text  string // the label at its end
	Ours  bool   // weir's own
	Raw   bool   // a cost that bounds all others
}

const (
	chartWidth = 880
	labelWidth = 310
	barHeight  = 18
	barStep    = 24
	valueWidth = 90
	sideMargin = 24 // for labels in wider fonts
	topMargin  = 44
)

// chartStyle makes the picture fit light and dark pages: it has no background, and
// follows the reader's colour scheme.
const chartStyle = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
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
	bars := slices.SortedStableFunc(slices.Values(c.Bars), func(a, b Bar) int { return cmp.Compare(a.Value, b.Value) })
	most := c.most(bars)
	scale := (chartWidth - labelWidth - valueWidth) / most
	height := topMargin + len(bars)*barStep + 8

	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d 0 %d %d" width="%d" role="img" aria-label="%s">`+"\n",
		-sideMargin, chartWidth+2*sideMargin, height, chartWidth, escape(c.Title))
	fmt.Fprintf(&s, "<style>%s</style>\n", chartStyle)
	fmt.Fprintf(&s, `<text class="title" x="8" y="22">%s</text>`+"\n", escape(c.Title))
	legend(&s)
	for i, b := range bars {
		y := topMargin + i*barStep
		length := max(1, min(b.Value, most)*scale)
		if b.Value > most {
			b.Text = "» " + b.Text
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-8, y+14, escape(b.Label))
		fmt.Fprintf(&s, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`, b.class(), labelWidth, y, length, barHeight)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s%s</text>`+"\n", labelWidth+length+6, y+14, escape(b.Text), escape(c.Unit))
	}
	if c.Mark > 0 {
		x := labelWidth + c.Mark*scale
		fmt.Fprintf(&s, `<line class="mark" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", x, x, topMargin-6, height-6)
	}
	s.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}

// most returns the longest length to draw: that of the longest bar, at most three
// times that of the median.
func (c *Chart) most(sorted []Bar) float64 {
	if len(sorted) == 0 {
		return 1
	}
	longest, middle := sorted[len(sorted)-1].Value, sorted[len(sorted)/2].Value
	if middle > 0 {
		longest = min(longest, 3*middle)
	}
	return max(longest, c.Mark, 1e-9)
}

// legend draws the meaning of the colours, to the right of the title.
func legend(s *strings.Builder) {
	x := chartWidth - 210
	for _, b := range []Bar{{Label: "weir", Ours: true}, {Label: "peers"}, {Label: "raw costs", Raw: true}} {
		fmt.Fprintf(s, `<rect class="%s" x="%d" y="12" width="12" height="12" rx="2"/>`, b.class(), x)
		fmt.Fprintf(s, `<text x="%d" y="22">%s</text>`+"\n", x+17, b.Label)
		x += 68
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
