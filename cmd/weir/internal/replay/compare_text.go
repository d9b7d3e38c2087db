package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteText writes the comparison as text, with times in UTC.
func (c *Comparison) WriteText(w io.Writer) error { return c.write(w, false) }

// WriteTerminal writes the comparison as [Comparison.WriteText] does, with lines
// that show numbers over time.
func (c *Comparison) WriteTerminal(w io.Writer) error { return c.write(w, true) }

func (c *Comparison) write(w io.Writer, graphs bool) error {
	out := bufio.NewWriter(w)
	writeLines(out, c.Lines, c.Bad, c.BadLines)
	if c.Requests > 0 {
		fmt.Fprintf(out, "requests: %d, %s to %s UTC\n", c.Requests, moment(&c.From), moment(&c.To))
	}
	writeMissing(out, c.Missing)
	fmt.Fprintf(out, "denied before: %d (%s), denied now: %d (%s)\n\n",
		c.DeniedOld, percent(c.DeniedOld, c.Requests), c.DeniedNew, percent(c.DeniedNew, c.Requests))
	fmt.Fprintf(out, "newly denied:  %d (%s)\n", c.NewlyDenied, percent(c.NewlyDenied, c.Requests))
	fmt.Fprintf(out, "newly allowed: %d (%s)\n", c.NewlyAllowed, percent(c.NewlyAllowed, c.Requests))
	if c.OtherOutcome > 0 {
		fmt.Fprintf(out, "other outcome: %d (%s)\n", c.OtherOutcome, percent(c.OtherOutcome, c.Requests))
	}
	if graphs && c.NewlyDeniedOver != nil {
		for _, of := range []struct {
			name string
			n    []int64
		}{{"newly denied", c.NewlyDeniedOver.Denied}, {"newly allowed", c.NewlyAllowedOver.Denied}} {
			if graph, peak := spark(of.n); peak > 0 {
				fmt.Fprintf(out, "  %s  %s\n", graph, of.name)
			}
		}
	}
	return errors.Join(writeChanges(out, "newly denied by", c.Denials), writeChanges(out, "newly allowed, denied before by", c.Admissions), out.Flush())
}

func writeChanges(out io.Writer, title string, list []Change) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range list {
		name := printable(c.Rule)
		if name == "" {
			name = "unmatched"
		}
		fmt.Fprintf(table, "\n%s %s: %s, %s\n", title, name, count(c.Requests, "request"), count(c.Keys, "key"))
		for _, k := range c.Top {
			fmt.Fprintf(table, "  %s\t%d\t%s\t%s\n", keyText(k.Key), k.Denied, moment(&k.First), moment(&k.Last))
		}
		for _, e := range c.Examples {
			fmt.Fprintf(table, "  %s:%d: %s: %s\n", printable(e.Log), e.Line, e.Time.Format(time.DateTime), printable(e.Text))
		}
	}
	return table.Flush()
}
