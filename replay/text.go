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

// WriteText writes the report as tables, with times in UTC.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "lines: %d, bad: %d\n", r.Lines, r.Bad)
	for _, b := range r.BadLines {
		fmt.Fprintf(out, "  %s\n", b)
	}
	if more := r.Bad - int64(len(r.BadLines)); more > 0 && len(r.BadLines) > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
	if r.Degraded > 0 {
		fmt.Fprintf(out, "%d requests found the table of keys full\n", r.Degraded)
	}
	fmt.Fprintln(out)
	return errors.Join(r.writeRules(out), r.writeTop(out), out.Flush())
}

func (r *Report) writeRules(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "matched\tallowed\tdenied\tdecided\tkeys\tfirst denial\tlast denial\t rule")
	for i := range r.Rules {
		t := &r.Rules[i]
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%s\t%s\t %s\n", t.Matched, t.Allowed, t.Denied, t.Decided, t.Keys,
			moment(t.FirstDenied), moment(t.LastDenied), printable(t.Name))
	}
	return table.Flush()
}

func (r *Report) writeTop(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range r.Rules {
		t := &r.Rules[i]
		for n, k := range t.TopDenied {
			if n == 0 {
				fmt.Fprintf(table, "\ntop denied by %s\n", printable(t.Name))
			}
			fmt.Fprintf(table, "  %s\t%d\n", printable(excerpt(k.Key)), k.Denied)
		}
	}
	return table.Flush()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
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
