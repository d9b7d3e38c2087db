// Package page writes the reports of package replay as HTML pages. A page is one
// file. It needs no network, follows the reader's light or dark colours, and prints.
// Every chart has its numbers in a table below.
package page

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"github.com/weirhq/weir/replay"
)

// The charts are drawn by uPlot (MIT licence, uplot/LICENSE).
var (
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed page.html
	source string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"count": count, "percent": percent, "moment": moment, "short": short, "level": level, "add": func(a, b int) int { return a + b },
}).Parse(source))

// document is the content of a page.
type document struct {
	Title   string
	Command string // how the report was made
	Tiles   []tile
	Charts  []chart
	Heats   []heat

	Report     *replay.Report
	Comparison *replay.Comparison
	Suggestion *replay.Suggestion

	BadLines []replay.BadLine
	Data     []plot // of the charts, for the script

	Style, UplotStyle   template.CSS
	Script, UplotScript template.JS
}

// tile is one number.
type tile struct{ Name, Value, Note string }

// chart is a chart with its numbers. ID is its index in document.Data.
type chart struct {
	ID          int
	Title, Note string
	Head        []string
	Rows        [][]string
}

// plot is what the script draws: series over x. With Time x is seconds since the
// epoch; otherwise it is the index of a label.
type plot struct {
	Kind   string    `json:"kind"` // "time", "bars" or "curve"
	Label  string    `json:"label"`
	X      []float64 `json:"x"`
	Labels []string  `json:"labels,omitempty"`
	Series []series  `json:"series"`
	Mark   int       `json:"mark"` // index in X of a line to draw, or -1
	Text   string    `json:"text"` // beside the line
}

type series struct {
	Name   string    `json:"name"`
	Color  string    `json:"color"` // the name of a CSS variable
	Values []float64 `json:"values"`
}

// Replay writes the page of a replay. command states how it was made.
func Replay(w io.Writer, r *replay.Report, command string) error {
	d := document{Title: "Replay", Command: command, Report: r, BadLines: r.BadLines}
	d.Tiles = []tile{
		{"Requests", count(r.Requests), moment(r.From) + " to " + moment(r.To) + " UTC"},
		{"Denied", count(r.Denied), percent(r.Denied, r.Requests)},
		{"Matched no rule", count(r.Unmatched), percent(r.Unmatched, r.Requests)},
		{"Bad lines", count(r.Bad), "of " + count(r.Lines)},
	}
	d.timeline("Requests over time", "All requests.", r.Timeline, "allowed", "denied")
	for i := range r.Rules {
		if t := &r.Rules[i]; t.Denied > 0 {
			d.timeline("Rule "+t.Name, "The requests that the rule matches; denied are those over its limit.", t.Timeline, "within the limit", "over the limit")
		}
	}
	d.heat("Requests by hour", r.Hours, false)
	if r.Denied > 0 {
		d.heat("Denied requests by hour", r.Hours, true)
	}
	return d.write(w)
}

// Comparison writes the page of a comparison. command states how it was made.
func Comparison(w io.Writer, c *replay.Comparison, command string) error {
	d := document{Title: "Comparison", Command: command, Comparison: c, BadLines: c.BadLines}
	d.Tiles = []tile{
		{"Newly denied", count(c.NewlyDenied), percent(c.NewlyDenied, c.Requests)},
		{"Newly allowed", count(c.NewlyAllowed), percent(c.NewlyAllowed, c.Requests)},
		{"Denied before", count(c.DeniedOld), percent(c.DeniedOld, c.Requests)},
		{"Denied now", count(c.DeniedNew), percent(c.DeniedNew, c.Requests)},
		{"Requests", count(c.Requests), moment(c.From) + " to " + moment(c.To) + " UTC"},
	}
	if c.NewlyDenied > 0 {
		d.timeline("Newly denied over time", "Requests that only the new rules deny.", c.NewlyDeniedOver, "", "newly denied")
	}
	if c.NewlyAllowed > 0 {
		d.timeline("Newly allowed over time", "Requests that only the old rules deny.", c.NewlyAllowedOver, "", "newly allowed")
	}
	return d.write(w)
}

// Suggestion writes the page of a suggestion. command states how it was made.
func Suggestion(w io.Writer, s *replay.Suggestion, command string) error {
	d := document{Title: "Suggestion for " + s.Rule, Command: command, Suggestion: s, BadLines: s.BadLines}
	d.Tiles = []tile{
		{"Requests", count(s.Matched), moment(s.From) + " to " + moment(s.To) + " UTC"},
		{"Keys", count(s.Keys), "with a request that the rule matches"},
		{"Bad lines", count(s.Bad), "of " + count(s.Lines)},
	}
	for i := range s.Windows {
		d.swept(&s.Windows[i])
	}
	return d.write(w)
}

func (d *document) write(w io.Writer) error {
	d.Style, d.UplotStyle = template.CSS(style), template.CSS(uplotStyle)
	d.Script, d.UplotScript = template.JS(script), template.JS(uplotScript)
	return page.Execute(w, d)
}

// add adds a chart.
func (d *document) add(c chart, p plot) {
	c.ID = len(d.Data)
	p.Label = c.Title
	d.Charts, d.Data = append(d.Charts, c), append(d.Data, p)
}

// timeline adds a chart over time. An empty name leaves its series out.
func (d *document) timeline(title, note string, t *replay.Timeline, allowed, denied string) {
	if t == nil {
		return
	}
	p := plot{Kind: "time", Mark: -1}
	c := chart{Title: title, Note: note + " Each point is " + length(t.Seconds) + ".", Head: []string{"From (UTC)"}}
	p.X = make([]float64, len(t.Denied))
	for i := range p.X {
		p.X[i] = float64(t.Start.Unix() + int64(i)*t.Seconds)
	}
	for _, s := range []struct {
		name, color string
		of          []int64
	}{{denied, "--denied", t.Denied}, {allowed, "--allowed", t.Allowed}} {
		if s.name != "" {
			c.Head = append(c.Head, s.name)
			p.Series = append(p.Series, series{s.name, s.color, floats(s.of)})
		}
	}
	for i := range p.X {
		row := []string{t.Start.Add(time.Duration(int64(i)*t.Seconds) * time.Second).Format("2006-01-02 15:04:05")}
		sum := int64(0)
		for _, s := range p.Series {
			row = append(row, count(int64(s.Values[i])))
			sum += int64(s.Values[i])
		}
		if sum > 0 {
			c.Rows = append(c.Rows, row)
		}
	}
	d.add(c, p)
}

// swept adds the charts of one window.
func (d *document) swept(s *replay.Swept) {
	bars := plot{Kind: "bars", Mark: -1, Series: []series{{"keys", "--allowed", floats(s.Peaks.Keys)}}}
	c := chart{
		Title: "Peaks of keys in " + s.Window, Head: []string{"highest use up to", "keys"},
		Note: "How many keys have their highest use in each range. The line is the suggested limit: the keys to its right exceed it.",
	}
	for i, b := range s.Peaks.Bounds {
		bars.X, bars.Labels = append(bars.X, float64(i)), append(bars.Labels, count(b))
		c.Rows = append(c.Rows, []string{count(b), count(s.Peaks.Keys[i])})
	}
	if s.Suggested >= 0 {
		bars.Mark, bars.Text = s.Suggested, "limit "+count(s.Candidates[s.Suggested].Quota)
	}
	d.add(c, bars)

	curve := plot{Kind: "curve", Mark: bars.Mark, Text: bars.Text}
	keys, requests := series{Name: "% of keys denied", Color: "--allowed"}, series{Name: "% of requests denied", Color: "--denied"}
	c = chart{
		Title: "What each limit denies in " + s.Window, Note: "The share of keys with a denied request, and of denied requests, by the limit.",
		Head: []string{"limit", "requests denied", "%", "keys denied", "%"},
	}
	for i, q := range s.Candidates {
		curve.X, curve.Labels = append(curve.X, float64(i)), append(curve.Labels, count(q.Quota))
		keys.Values, requests.Values = append(keys.Values, 100*q.KeysShare), append(requests.Values, 100*q.DeniedShare)
		c.Rows = append(c.Rows, []string{count(q.Quota), count(q.Denied), share(q.DeniedShare), count(q.KeysDenied), share(q.KeysShare)})
	}
	curve.Series = []series{requests, keys}
	d.add(c, curve)
}

func floats(of []int64) []float64 {
	list := make([]float64, len(of))
	for i, n := range of {
		list[i] = float64(n)
	}
	return list
}
