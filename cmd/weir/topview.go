package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/printable"
)

// The part of the service's JSON that weir top shows.
type (
	topAnswer struct {
		Rules  []topRule `json:"rules"`
		Missed int64     `json:"missed"`
	}
	topRule struct {
		Rule   string    `json:"rule"`
		Shadow bool      `json:"shadow"`
		Since  time.Time `json:"since"`
		Used   topList   `json:"used"`
		Denied topList   `json:"denied"`
	}
	topList struct {
		topCount
		Sample int64    `json:"sample"`
		Error  int64    `json:"error"`
		Keys   []topKey `json:"keys"`
	}
	topKey struct {
		Key string `json:"key"`
		topCount
		Error    int64 `json:"error"`
		Override bool  `json:"override"`
	}
	// topCount is a number of hits or of takes. The other one is 0.
	topCount struct {
		Hits  int64 `json:"hits"`
		Takes int64 `json:"takes"`
	}
	denialsAnswer struct {
		Denials  []denial  `json:"denials"`
		Oldest   time.Time `json:"oldest"`
		Dropped  int64     `json:"dropped"`
		Degraded bool      `json:"degraded"`
	}
	denial struct {
		Time       time.Time `json:"time"`
		Rule       string    `json:"rule"`
		Shadow     bool      `json:"shadow"`
		Key        string    `json:"key"`
		Reason     string    `json:"reason"`
		Outcome    string    `json:"outcome"`
		Hits       int64     `json:"hits"`
		Used       int64     `json:"used"`
		Quota      int64     `json:"quota"`
		Cause      string    `json:"degraded_reason"`
		RetryAfter seconds   `json:"retry_after"`
		Override   bool      `json:"override"`
	}
)

func (c topCount) number() int64 { return c.Hits + c.Takes }

// topView is what weir top shows: one answer of the service, and the one before,
// from which it computes rates.
type topView struct {
	top     topAnswer
	denials []denial

	before  topAnswer
	elapsed time.Duration // since before; 0: there is none

	zone   *time.Location
	layout string // of times; empty: the time of day
}

// clock returns t in v's zone.
func (v *topView) clock(t time.Time) string {
	return t.In(v.zone).Format(cmp.Or(v.layout, time.TimeOnly))
}

// size is the size of a terminal in characters. 0 means unlimited.
type size struct{ width, height int }

// lines returns the text of v. It has at most s.height lines, each of at most
// s.width characters.
func (v *topView) lines(s size) []string {
	denials := v.denials
	rows := 10 // of each rule
	if s.height > 0 {
		height := s.height - min(len(denials), s.height/4) - 2
		rows = max(height/max(len(v.top.Rules), 1)-3, 1)
	}
	var all []string
	for i := range v.top.Rules {
		r := &v.top.Rules[i]
		block := append(v.block(r, rows, s.width), "")
		if s.height > 0 && i > 0 && len(all)+len(block) > s.height-4 {
			all = append(all, plural(len(v.top.Rules)-i, "more rule")+": weir top RULE", "")
			break
		}
		all = append(all, block...)
	}
	if v.top.Missed > 0 {
		all = append(all, fmt.Sprintf("%d decisions were too many to count", v.top.Missed))
	}
	if len(v.top.Rules) == 0 {
		all = append(all, "no takes and records in the last five minutes")
	}
	if len(denials) > 0 {
		all = append(all, "RECENT DENIALS")
		if s.height > 0 {
			denials = denials[:max(min(len(denials), s.height-len(all)), 0)]
		}
		all = append(all, v.table(denials)...)
	}
	if last := len(all) - 1; all[last] == "" {
		all = all[:last]
	}
	if s.height > 0 {
		all = all[:min(len(all), s.height)]
	}
	for i := range all {
		all[i] = cut(strings.TrimRight(strings.ReplaceAll(all[i], "\t", " "), " "), s.width)
	}
	return all
}

// block returns the lines of one rule, with at most some rows of keys.
func (v *topView) block(r *topRule, rows, width int) []string {
	head := printable.Text(r.Rule)
	if r.Shadow {
		head += " (shadow)"
	}
	head += fmt.Sprintf("  hits %d, denied %d, since %s", r.Used.Hits, r.Denied.Takes, v.clock(r.Since))
	if most := max(r.Used.Sample, r.Denied.Sample); most > 1 {
		head += fmt.Sprintf(", from one decision in %d", most)
	}
	if r.Used.Error > 0 {
		head += fmt.Sprintf(", hits of other keys at most %d", r.Used.Error)
	}
	if r.Denied.Error > 0 {
		head += fmt.Sprintf(", denied of other keys at most %d", r.Denied.Error)
	}
	var before topRule
	for i := range v.before.Rules {
		if v.before.Rules[i].Rule == r.Rule {
			before = v.before.Rules[i]
		}
	}
	half := 0
	if width > 0 {
		half = (width - 3) / 2
	}
	used := v.column("HITS", &r.Used, &before.Used, rows, half)
	denied := v.column("DENIED", &r.Denied, &before.Denied, rows, half)
	left := 0
	for _, line := range used {
		left = max(left, utf8.RuneCountInString(line))
	}
	lines := []string{head}
	for i := range max(len(used), len(denied)) {
		line := ""
		if i < len(used) {
			line = used[i]
		}
		line = fmt.Sprintf("%-*s", left, line)
		if i < len(denied) && len(denied) > 1 {
			line += "   " + denied[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// column returns the lines of one list: a heading, and at most some rows.
func (v *topView) column(title string, l, before *topList, rows, width int) []string {
	known := make(map[string]int64, len(before.Keys))
	for i := range before.Keys {
		known[before.Keys[i].Key] = before.Keys[i].number()
	}
	errors := false
	for i := range l.Keys {
		errors = errors || l.Keys[i].Error > 0
	}
	line := func(count, err, rate, key string) string {
		text := fmt.Sprintf("%9s", count)
		if errors {
			text += fmt.Sprintf(" %8s", err)
		}
		if v.elapsed > 0 {
			text += fmt.Sprintf(" %9s", rate)
		}
		return cut(text+"  "+key, width)
	}
	lines := []string{line(title, "ERROR", "A SECOND", "KEY")}
	for i := range l.Keys[:min(rows, len(l.Keys))] {
		k := &l.Keys[i]
		err, rate := "", ""
		if k.Error > 0 {
			err = fmt.Sprintf("-%d", k.Error)
		}
		if more := k.number() - known[k.Key]; v.elapsed > 0 && more > 0 {
			rate = fmt.Sprintf("%.1f", float64(more)/v.elapsed.Seconds())
		}
		key := printable.Text(k.Key)
		if k.Override {
			key += " (override)"
		}
		lines = append(lines, line(fmt.Sprint(k.number()), err, rate, key))
	}
	return lines
}

// table returns a line for each denial.
func (v *topView) table(denials []denial) []string {
	if len(denials) == 0 {
		return nil
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i := range denials {
		d := &denials[i]
		rule := d.Rule
		if d.Shadow {
			rule += " (shadow)"
		}
		key := strings.ReplaceAll(printable.Text(d.Key), "\t", " ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.clock(d.Time), printable.Text(rule), key, d.why())
	}
	_ = w.Flush() // into memory
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// why returns why d denied, in words.
func (d *denial) why() string {
	wait := "waiting will not help"
	if d.RetryAfter > 0 {
		wait = "retry after " + d.RetryAfter.String()
	}
	by := ""
	if d.Override {
		by = " by an override"
	}
	switch d.Reason {
	case "ban":
		return "banned; " + wait
	case "holds":
		return fmt.Sprintf("used %d of %d%s in the most holds; %s", d.Used, d.Quota, by, wait)
	case "limit":
		return fmt.Sprintf("used %d of %d%s, asked for %d; %s", d.Used, d.Quota, by, d.Hits, wait)
	case "outage":
		return fmt.Sprintf("the store did not answer (%s); %s", d.Cause, wait)
	case "verdict":
		return "denied by the rule: " + d.Outcome
	}
	return d.Reason + "; " + wait
}

// cut returns the first characters of text. A width of 0 is unlimited.
func cut(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:width-1]) + "…"
}
