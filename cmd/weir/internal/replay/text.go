package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Write writes the report as tables, with times in UTC, and with lines that show numbers
// over time if graphs is set.
func (r *Report) Write(w io.Writer, graphs bool) error {
	out := bufio.NewWriter(w)
	writeLines(out, r)
	if r.Requests > 0 {
		fmt.Fprintf(out, "requests: %d, allowed: %d, denied: %d (%s), %s to %s UTC\n",
			r.Requests, r.Allowed, r.Denied, percent(r.Denied, r.Requests), moment(&r.From), moment(&r.To))
	}
	writeRecords(out, r.Records, r.Ends)
	if r.Unmatched > 0 {
		fmt.Fprintf(out, "unmatched: %s (%s) matched no rule\n", count(r.Unmatched, "request"), percent(r.Unmatched, r.Requests))
	}
	writeMissing(out, r.Missing)
	if r.Degraded > 0 {
		fmt.Fprintf(out, "%s found the table of keys full\n", count(r.Degraded, "request"))
	}
	if graphs {
		r.writeGraphs(out)
	}
	fmt.Fprintln(out)
	return errors.Join(r.writeRules(out), r.writeMasks(out), r.writeTop(out), out.Flush())
}

// writeLines writes the number of lines, and the bad ones.
func writeLines(out io.Writer, of interface {
	Read() (int64, int64, []BadLine, int64)
}) {
	lines, bad, list, skipped := of.Read()
	fmt.Fprintf(out, "lines: %d, bad: %d", lines, bad)
	if skipped > 0 {
		fmt.Fprintf(out, ", skipped: %d about something else", skipped)
	}
	fmt.Fprintln(out)
	for _, b := range list {
		fmt.Fprintf(out, "  %s\n", b)
	}
	if more := bad - int64(len(list)); more > 0 && len(list) > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// writeRecords writes the numbers of lines that were not decided.
func writeRecords(out io.Writer, records, ends int64) {
	if records > 0 {
		fmt.Fprintf(out, "records: %d, counted and not decided\n", records)
	}
	if ends > 0 {
		fmt.Fprintf(out, "refunds, settles, cancels and renewals: %d\n", ends)
	}
}

// writeMissing writes the attributes that no request has.
func writeMissing(out io.Writer, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(out, "no request has: %s\n", printable(strings.Join(names, ", ")))
	}
}

func (r *Report) writeRules(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	alone := ""
	for i := range r.Rules {
		if r.Rules[i].Alone != nil {
			alone = "alone\t"
		}
	}
	fmt.Fprintln(table, "matched\tallowed\tdenied\tdecided\t"+alone+"keys\tkeys denied\tfirst denial\tlast denial\t rule")
	for i := range r.Rules {
		t := &r.Rules[i]
		if alone != "" {
			alone = "-\t"
			if t.Alone != nil {
				alone = fmt.Sprintf("%d\t", *t.Alone)
			}
		}
		name := printable(t.Name)
		if t.Mode != "enforce" {
			name += " (" + t.Mode + ")"
		}
		if t.Kind == "trigger" || t.Triggered > 0 {
			name += fmt.Sprintf(" (triggered %s)", count(t.Triggered, "time"))
		}
		if t.Banned > 0 {
			name += fmt.Sprintf(" (%d while banned)", t.Banned)
		}
		if t.Held > 0 {
			name += fmt.Sprintf(" (%d held)", t.Held)
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%s%d\t%d\t%s\t%s\t %s\n", t.Matched, t.Allowed, t.Denied, t.Decided, alone,
			t.Keys, t.KeysDenied, moment(t.FirstDenied), moment(t.LastDenied), name)
	}
	return table.Flush()
}

// writeMasks writes the rules that prevent others from denying.
func (r *Report) writeMasks(out io.Writer) error {
	first := true
	for i := range r.Rules {
		t := &r.Rules[i]
		if len(t.MaskedBy) == 0 {
			continue
		}
		if first {
			fmt.Fprintln(out)
			first = false
		}
		by := make([]string, len(t.MaskedBy))
		for i, m := range t.MaskedBy {
			by[i] = fmt.Sprintf("%s denies %d of these", printable(m.Rule), m.Denied)
		}
		fmt.Fprintf(out, "%s denies %d, alone it would deny %d; %s\n",
			printable(t.Name), t.Denied, *t.Alone, strings.Join(by, ", "))
	}
	return nil
}

func (r *Report) writeTop(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range r.Rules {
		t := &r.Rules[i]
		for n, k := range t.TopDenied {
			if n == 0 {
				fmt.Fprintf(table, "\ntop denied by %s\n", printable(t.Name))
			}
			fmt.Fprintf(table, "  %s\t%d\t%s\t%s\n", keyText(k.Key), k.Denied, moment(&k.First), moment(&k.Last))
		}
	}
	return table.Flush()
}

// graphWidth is the number of characters in a line that shows numbers over time.
const graphWidth = 64

// writeGraphs writes the requests over time, and the denied ones by rule.
func (r *Report) writeGraphs(out io.Writer) {
	if r.Timeline == nil {
		return
	}
	fmt.Fprintln(out)
	line := func(of []int64, name string) {
		if graph, peak := spark(of); peak > 0 {
			fmt.Fprintf(out, "  %s  %s\n", graph, name)
		}
	}
	all := make([]int64, len(r.Timeline.Allowed))
	for i := range all {
		all[i] = r.Timeline.Allowed[i] + r.Timeline.Denied[i]
	}
	line(all, "requests")
	line(r.Timeline.Denied, "denied")
	for i := range r.Rules {
		if t := &r.Rules[i]; t.Denied > 0 && t.Timeline != nil {
			line(within(t.Timeline, r.Timeline), "denied by "+printable(t.Name))
		}
	}
}

// within returns the denied requests of t in the buckets of all.
func within(t, all *Timeline) []int64 {
	to := make([]int64, len(all.Denied))
	for i, n := range t.Denied {
		at := t.Start.Unix() + int64(i)*t.Seconds
		if bucket := (at - all.Start.Unix()) / all.Seconds; bucket >= 0 && bucket < int64(len(to)) {
			to[bucket] += n
		}
	}
	return to
}

// spark returns numbers as a line of bars, and the largest sum of a bar.
func spark(of []int64) (graph string, peak int64) {
	bars := make([]int64, min(graphWidth, len(of)))
	for i, n := range of {
		bars[i*len(bars)/len(of)] += n
	}
	for _, n := range bars {
		peak = max(peak, n)
	}
	var b strings.Builder
	heights := []rune("▁▂▃▄▅▆▇█")
	for _, n := range bars {
		switch {
		case n == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(heights[(n*int64(len(heights))-1)/peak])
		}
	}
	return b.String(), peak
}

// percent returns part of all in percent.
func percent(part, all int64) string {
	if all == 0 {
		return "0 %"
	}
	p := 100 * float64(part) / float64(all)
	text := strconv.FormatFloat(p, 'f', 2, 64)
	if p > 0 && p < 0.01 {
		return "< 0.01 %"
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// count returns a number of things in words.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}

// keyText returns the text of a key in a line. A rule without per has one key, which is empty.
func keyText(key string) string {
	if key == "" {
		return "(all)"
	}
	return printable(excerpt(key))
}

// printable returns text unchanged, or quoted if it could confuse a terminal or a
// table. Clients can put any text into a log.
func printable(text string) string {
	strange := func(r rune) bool { return !strconv.IsPrint(r) }
	if strings.ContainsFunc(text, strange) || !utf8.ValidString(text) {
		return strconv.Quote(text)
	}
	return text
}
