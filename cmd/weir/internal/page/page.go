// Package page is weir's page: [Page] serves it at the admin address, and [Replay], [Comparison] and
// [Suggestion] write the reports of package replay as HTML pages. A report is one
// file. It needs no network, follows the reader's light or dark colours, and prints.
// Every chart has its numbers in a table below.
package page

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
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
	Heats   []heatMap

	Report     *replay.Report
	Comparison *replay.Comparison
	Suggestion *replay.Suggestion

	BadLines []replay.BadLine
	Missing  []string // attributes
	Data     []plot   // of the charts, for the script

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
	X0     string    `json:"x0"` // the name of x
	Marks  []mark    `json:"marks"`
}

// mark is a line at a point of x, or after the bar there.
type mark struct {
	At   int    `json:"at"` // index in plot.X
	Text string `json:"text"`
}

type series struct {
	Name   string    `json:"name"`
	Color  string    `json:"color"` // the name of a CSS variable
	Values []float64 `json:"values"`
}

// Replay writes the page of a replay. command states how it was made.
func Replay(w io.Writer, r *replay.Report, command string) error {
	d := document{Title: "Replay", Command: command, Report: r, BadLines: r.BadLines, Missing: r.Missing}
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
	for i := range r.Rules {
		d.rulePeaks("Peaks of keys under "+r.Rules[i].Name, "limit", r.Rules[i].Peaks, nil, "")
	}
	d.heat("Requests by hour", r.Hours, false)
	if r.Denied > 0 {
		d.heat("Denied requests by hour", r.Hours, true)
	}
	return d.write(w)
}

// Comparison writes the page of a comparison. command states how it was made.
func Comparison(w io.Writer, c *replay.Comparison, command string) error {
	d := document{Title: "Comparison", Command: command, Comparison: c, BadLines: c.BadLines, Missing: c.Missing}
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
	for i := range c.Peaks {
		d.comparedPeaks(&c.Peaks[i])
	}
	return d.write(w)
}

// Suggestion writes the page of a suggestion. command states how it was made.
func Suggestion(w io.Writer, s *replay.Suggestion, command string) error {
	d := document{Title: "Suggestion for " + s.Rule, Command: command, Suggestion: s, BadLines: s.BadLines, Missing: s.Missing}
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
	if p.Marks == nil {
		p.Marks = []mark{} // a list in JSON
	}
	d.Charts, d.Data = append(d.Charts, c), append(d.Data, p)
}

// timeline adds a chart over time. An empty name leaves its series out.
func (d *document) timeline(title, note string, t *replay.Timeline, allowed, denied string) {
	if t == nil {
		return
	}
	p := plot{Kind: "time", X0: "Time (UTC)"}
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

// peaks adds a chart of peaks: keys[i] keys have a peak of at most bounds[i], and above
// a higher one. unit follows the bounds.
func (d *document) peaks(title, note, unit string, bounds, keys []int64, above int64, marks []mark) {
	p := plot{Kind: "bars", X0: "Highest use up to", Marks: marks}
	c := chart{Title: title, Note: note, Head: []string{"highest use up to", "keys"}}
	values := floats(keys)
	labels := make([]string, 0, len(bounds)+1)
	for _, b := range bounds {
		labels = append(labels, compact(b)+unit)
		c.Rows = append(c.Rows, []string{count(b) + unit, count(keys[len(c.Rows)])})
	}
	if above > 0 {
		labels, values = append(labels, "more"), append(values, float64(above))
		c.Rows = append(c.Rows, []string{"more", count(above)})
	}
	for i := range labels {
		p.X = append(p.X, float64(i))
	}
	p.Labels, p.Series = labels, []series{{"keys", "--allowed", values}}
	d.add(c, p)
}

// rulePeaks adds a chart of the peaks of a limit. name is that of the line at the
// limit. other is the limit in the other rules, or nil.
func (d *document) rulePeaks(title, name string, p *replay.Distribution, other *replay.Distribution, otherName string) {
	if p == nil || !slices.ContainsFunc(p.Keys, func(n int64) bool { return n > 0 }) && p.Above == 0 {
		return
	}
	unit := ""
	note := "How many keys have their highest use in each range, if no limit denied any request. "
	if p.Percent {
		unit, note = "\u202f%", note+"The limit depends on an attribute, so the use is in percent of it. "
	}
	marks := []mark{{boundAt(p, p.Quota), name + " " + count(p.Quota) + unit}}
	lines := "The line is the limit: the keys to its right exceed it."
	if other != nil && other.Quota != p.Quota {
		marks = append(marks, mark{boundAt(p, other.Quota), otherName + " " + count(other.Quota) + unit})
		lines = "The lines are the limits: the keys to the right of a line exceed it."
	}
	d.peaks(title, note+lines, unit, p.Bounds, p.Keys, p.Above, marks)
}

// boundAt returns the index of the range that ends with quota: -1 for a quota of 0.
func boundAt(p *replay.Distribution, quota int64) int {
	for i, b := range p.Bounds {
		if b > quota {
			return i - 1
		}
	}
	return len(p.Bounds) - 1
}

// comparedPeaks adds the charts of the peaks of a limit: one chart with both limits if the peaks
// are the same.
func (d *document) comparedPeaks(p *replay.ComparedPeaks) {
	title := "Peaks of keys under " + p.Rule
	old, current := p.Old, p.New
	if old != nil && current != nil && slices.Equal(old.Bounds, current.Bounds) && slices.Equal(old.Keys, current.Keys) &&
		old.Above == current.Above && old.Percent == current.Percent {
		name := "new limit"
		if old.Quota == current.Quota {
			name = "limit"
		}
		d.rulePeaks(title, name, current, old, "old limit")
		return
	}
	d.rulePeaks(title+" (old rules)", "limit", old, nil, "")
	d.rulePeaks(title+" (new rules)", "limit", current, nil, "")
}

// swept adds the charts of one window.
func (d *document) swept(s *replay.Swept) {
	var marks []mark
	note := "How many keys have their highest use in each range."
	if s.Suggested >= 0 {
		marks = []mark{{s.Suggested, "limit " + count(s.Candidates[s.Suggested].Quota)}}
		note += " The line is the suggested limit: the keys to its right exceed it."
	}
	d.peaks("Peaks of keys in "+s.Window, note, "", s.Peaks.Bounds, s.Peaks.Keys, 0, marks)

	curve := plot{Kind: "curve", X0: "Limit", Marks: marks}
	keys, requests := series{Name: "% of keys denied", Color: "--allowed"}, series{Name: "% of requests denied", Color: "--denied"}
	c := chart{
		Title: "What each limit denies in " + s.Window, Note: "The share of keys with a denied request, and of denied requests, by the limit.",
		Head: []string{"limit", "requests denied", "%", "keys denied", "%"},
	}
	for i, q := range s.Candidates {
		curve.X, curve.Labels = append(curve.X, float64(i)), append(curve.Labels, compact(q.Quota))
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

// count returns a number with a thin space between each three digits.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return text
}

// compact returns a number with k, M or G for thousands, millions and so on if that is exact.
func compact(n int64) string {
	switch {
	case n < 10_000 || n%1e3 != 0:
		return count(n)
	case n%1e6 != 0:
		return count(n/1e3) + "k"
	case n%1e9 != 0:
		return count(n/1e6) + "M"
	}
	return count(n/1e9) + "G"
}

// percent returns part of all in percent.
func percent(part, all int64) string {
	if all == 0 {
		return share(0)
	}
	return share(float64(part) / float64(all))
}

// share returns a share in percent.
func share(of float64) string {
	if of > 0 && of < 0.0001 {
		return "< 0.01 %"
	}
	text := strconv.FormatFloat(100*of, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// moment returns a time in UTC. It accepts a time and a pointer to one.
func moment(t any) string {
	at, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		at, ok = *p, true
	}
	if !ok || at.IsZero() {
		return "–"
	}
	return at.UTC().Format(time.DateTime)
}

// short returns the start of a long text, with control characters made visible.
func short(text string) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 120 {
		return string(runes[:120]) + "…"
	}
	return text
}

// length returns a number of seconds in words.
func length(seconds int64) string {
	for _, u := range []struct {
		seconds int64
		name    string
	}{{24 * 3600, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		if n := seconds / u.seconds; seconds%u.seconds == 0 {
			if n == 1 {
				return "1 " + u.name
			}
			return strconv.FormatInt(n, 10) + " " + u.name + "s"
		}
	}
	return ""
}

// heatMap is a table of hours by days.
type heatMap struct {
	Title string
	Hours []string // the heads of the columns
	Days  []heatDay
	Most  int64 // the largest number
}

type heatDay struct {
	Name  string
	Cells []int64
}

// maxDays is the maximum number of days in a heat map. For a longer log, it shows the last ones.
const maxDays = 62

// heat adds a heat map of the denied requests of t, or of all.
func (d *document) heat(title string, t *replay.Timeline, denied bool) {
	if t == nil || t.Seconds != 3600 {
		return
	}
	h := heatMap{Title: title}
	for hour := range 24 {
		h.Hours = append(h.Hours, strconv.Itoa(hour))
	}
	for i := range t.Denied {
		at := t.Start.Add(time.Duration(i) * time.Hour)
		name := at.Format("Mon 2006-01-02")
		if n := len(h.Days); n == 0 || h.Days[n-1].Name != name {
			h.Days = append(h.Days, heatDay{name, make([]int64, 24)})
		}
		n := t.Denied[i]
		if !denied {
			n += t.Allowed[i]
		}
		h.Days[len(h.Days)-1].Cells[at.Hour()] = n
		h.Most = max(h.Most, n)
	}
	h.Days = h.Days[max(0, len(h.Days)-maxDays):]
	d.Heats = append(d.Heats, h)
}

// level returns a class for a number: 0 for none, 1 to 6 by its share of the
// largest one.
func level(n, most int64) int64 {
	if n == 0 {
		return 0
	}
	return 1 + (n*6-1)/most
}
