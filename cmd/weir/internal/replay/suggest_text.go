package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Write writes the suggestion as tables, with times in UTC, and with bars if graphs is set.
func (s *Suggestion) Write(w io.Writer, graphs bool) error {
	out := bufio.NewWriter(w)
	writeLines(out, s.Lines, s.Bad, s.BadLines)
	fmt.Fprintf(out, "rule %s matched %s of %s", printable(s.Rule), count(s.Matched, "request"), count(s.Keys, "key"))
	if !s.From.IsZero() {
		fmt.Fprintf(out, ", %s to %s UTC", moment(&s.From), moment(&s.To))
	}
	fmt.Fprintln(out)
	writeMissing(out, s.Missing)
	var errs []error
	for i := range s.Windows {
		errs = append(errs, s.Windows[i].write(out, graphs))
	}
	return errors.Join(append(errs, out.Flush())...)
}

func (s *Swept) write(out io.Writer, graphs bool) error {
	p := &s.Peaks
	fmt.Fprintf(out, "\nin %s\n", s.Window)
	if s.matched == 0 {
		_, err := fmt.Fprintln(out, s.Reason)
		return err
	}
	fmt.Fprintf(out, "peaks of keys: half up to %d, 90 %% up to %d, 99 %% up to %d, 99.9 %% up to %d, all up to %d\n", p.P50, p.P90, p.P99, p.P999, p.Max)
	if graphs {
		s.writeBars(out)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "quota\tdenied\tof requests\tkeys denied\tof keys\t")
	for i, c := range s.Candidates {
		mark := ""
		if i == s.Suggested {
			mark = " suggested"
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%d\t%s\t%s\n", c.Quota, c.Denied, percent(c.Denied, s.matched), c.KeysDenied, percent(c.KeysDenied, s.keys), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for n, k := range p.Top {
		if n == 0 {
			fmt.Fprintln(table, "highest peaks")
		}
		fmt.Fprintf(table, "  %s\t%d\tat %s\t%s\n", keyText(k.Key), k.Peak, moment(&k.At), count(k.Requests, "request"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if s.Suggested >= 0 {
		fmt.Fprintf(out, "suggested: %d in %s. ", s.Candidates[s.Suggested].Quota, s.Window)
	}
	_, err := fmt.Fprintln(out, s.Reason)
	return err
}

// writeBars writes the distribution of peaks.
func (s *Swept) writeBars(out io.Writer) {
	most := int64(0)
	for _, n := range s.Peaks.Keys {
		most = max(most, n)
	}
	for i, n := range s.Peaks.Keys {
		if n > 0 {
			fmt.Fprintf(out, "  up to %6d %s %s\n", s.Peaks.Bounds[i], strings.Repeat("█", int(max(1, n*40/most))), count(n, "key"))
		}
	}
}
