package replay

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Comparison holds the differences between two sets of rules, decision by
// decision. Its JSON form is the output of `weir compare --json`.
type Comparison struct {
	// Lines, Bad, Skipped, BadLines, Requests, Records, Ends, From and To are as in [Report].
	Lines    int64     `json:"lines"`
	Bad      int64     `json:"bad"`
	Skipped  int64     `json:"skipped,omitzero"`
	Requests int64     `json:"requests"`
	Records  int64     `json:"records,omitzero"`
	Ends     int64     `json:"ends,omitzero"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`

	// DeniedOld and DeniedNew are the requests that the old and the new rules
	// deny.
	DeniedOld int64 `json:"denied_old"`
	DeniedNew int64 `json:"denied_new"`

	// NewlyDenied is the number of requests that only the new rules deny, and
	// NewlyAllowed the number of those that only the old rules deny.
	// OtherOutcome is the number of requests that both allow, or both deny, with
	// different outcomes.
	NewlyDenied  int64 `json:"newly_denied"`
	NewlyAllowed int64 `json:"newly_allowed"`
	OtherOutcome int64 `json:"other_outcome"`

	// Denials has the newly denied requests by the new rule that denies them,
	// and Admissions the newly allowed ones by the old rule that denied them; in
	// the order of the rules, without rules that have none. An empty name stands
	// for requests that no rule matches.
	Denials    []Change `json:"denials"`
	Admissions []Change `json:"admissions"`

	// NewlyDeniedOver has the newly denied requests over time under Denied, and
	// the others under Allowed. NewlyAllowedOver has the newly allowed requests
	// under Denied. They are nil if there is no request.
	NewlyDeniedOver  *Timeline `json:"newly_denied_over"`
	NewlyAllowedOver *Timeline `json:"newly_allowed_over"`

	// Peaks has the peaks of the keys of each limit. It is nil without [WithPeaks].
	Peaks []ComparedPeaks `json:"peaks,omitempty"`

	// Missing is as in [Report].
	Missing []string `json:"missing,omitempty"`

	BadLines []BadLine `json:"bad_lines"`
}

// Read is [Report.Read].
func (c *Comparison) Read() (lines, bad int64, first []BadLine, skipped int64) {
	return c.Lines, c.Bad, c.BadLines, c.Skipped
}

// Change has the requests that one rule denies and the other set of rules allows.
type Change struct {
	Rule     string `json:"rule"`
	Requests int64  `json:"requests"`

	// Keys is the number of different keys, and Top those with the most requests.
	// They are empty for a verdict.
	Keys int64       `json:"keys"`
	Top  []DeniedKey `json:"top"`

	// Examples has the first requests.
	Examples []Example `json:"examples"`
}

// Example is a request of a log.
type Example struct {
	Log  string    `json:"log"`
	Line int64     `json:"line"`
	Time time.Time `json:"time"`
	Key  string    `json:"key"`
	Text string    `json:"text"` // the start of the line
}

// Compare sends every request of source through the old rules and through the new
// ones, each with its own counters, and returns the differences. Its errors are
// those of [Run].
func Compare(ctx context.Context, before, after *rule.Set, source Source, list ...Option) (*Comparison, error) {
	o := apply(list)
	names := union(before.Attributes(), after.Attributes())
	f, err := newFeed(ctx, source, names, &o)
	if err != nil {
		return nil, err
	}
	defer f.close()
	c := comparing{denials: newChanges(&o), admissions: newChanges(&o)}
	c.denied, c.allowed = newTimeline(0, mostBuckets), newTimeline(0, mostBuckets)
	if c.old, err = newDecider(before, f); err != nil {
		return nil, err
	}
	if c.new, err = newDecider(after, f); err != nil {
		return nil, err
	}
	if o.peaks {
		if c.oldPeaks, err = newMeasuring(before, after, f); err != nil {
			return nil, err
		}
		if c.newPeaks, err = newMeasuring(after, before, f); err != nil {
			return nil, err
		}
	}
	for i := range after.Len() {
		c.sums = c.sums || after.Rule(i).Measure == window.Sum
	}
	err = f.each(ctx, c.take)
	r := &c.Comparison
	r.Lines, r.Bad, r.BadLines, r.Requests, r.Records, r.Ends = f.lines, f.bad, f.badLines, f.lines-f.bad-f.records-f.ends, f.records, f.ends
	r.From, r.To = f.span()
	r.Skipped = skippedOf(f.reader)
	r.Denials, r.Admissions = c.denials.report(after), c.admissions.report(before)
	r.Missing = f.missing()
	r.Peaks = comparedPeaks(before, after, c.oldPeaks, c.newPeaks)
	r.NewlyDeniedOver, r.NewlyAllowedOver = c.denied.report(), c.allowed.report()
	return r, err
}

// union returns the names in a or b, sorted.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// comparing is a running comparison.
type comparing struct {
	Comparison
	old, new            *decider
	denials, admissions *changes
	denied, allowed     *timeline
	sums                bool       // a new rule sums
	oldPeaks, newPeaks  *measuring // nil: not asked for
}

func (c *comparing) take(ctx context.Context, e *Entry) error {
	if c.sums { // the new rules may refuse the input: ask before the old ones count it
		if err := c.new.check(ctx, e); err != nil {
			return err
		}
	}
	before, err := c.old.do(ctx, e, e.Verb)
	if err != nil {
		return err
	}
	after, err := c.new.do(ctx, e, e.Verb)
	if err != nil {
		return err
	}
	for _, m := range []*measuring{c.oldPeaks, c.newPeaks} {
		if err := m.take(ctx, e); err != nil {
			return err
		}
	}
	if e.Verb == Record {
		return nil
	}
	if !before.Allowed {
		c.DeniedOld++
	}
	if !after.Allowed {
		c.DeniedNew++
	}
	newlyDenied, newlyAllowed := before.Allowed && !after.Allowed, !before.Allowed && after.Allowed
	c.denied.add(e.Time, !newlyDenied)
	c.allowed.add(e.Time, !newlyAllowed)
	switch {
	case newlyDenied:
		c.NewlyDenied++
		c.denials.add(after, e)
	case newlyAllowed:
		c.NewlyAllowed++
		c.admissions.add(before, e)
	case before.Outcome != after.Outcome:
		c.OtherOutcome++
	}
	return nil
}

// changes collects requests by the rule that denies them.
type changes struct {
	top, examples int
	byRule        map[string]*change
}

type change struct {
	requests int64
	keys     keyDenials
	examples []Example
}

func newChanges(o *options) *changes {
	return &changes{top: o.top, examples: o.examples, byRule: map[string]*change{}}
}

// add counts a request that d denies.
func (cs *changes) add(d *weir.Decision, e *Entry) {
	c := cs.byRule[d.Rule]
	if c == nil {
		c = &change{keys: keyDenials{}, examples: []Example{}}
		cs.byRule[d.Rule] = c
	}
	c.requests++
	key := ""
	for i := range d.Usages {
		if u := &d.Usages[i]; u.Rule == d.Rule {
			key = u.Key
			c.keys.add(key, e.Time)
		}
	}
	if len(c.examples) < cs.examples {
		c.examples = append(c.examples, Example{
			strings.Clone(e.Log), e.Line, e.Time.Time(), strings.Clone(key), strings.Clone(excerpt(e.Text)),
		})
	}
}

// report returns the changes in the order of rules.
func (cs *changes) report(rules *rule.Set) []Change {
	list := []Change{}
	for name, c := range cs.byRule {
		list = append(list, Change{Rule: name, Requests: c.requests, Keys: int64(len(c.keys)), Top: c.keys.top(cs.top), Examples: c.examples})
	}
	slices.SortFunc(list, func(a, b Change) int {
		x, _ := rules.Find(a.Rule)
		y, _ := rules.Find(b.Rule)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.Rule, b.Rule))
	})
	return list
}

// Write writes the comparison as text, with times in UTC, and with lines that show numbers
// over time if graphs is set.
func (c *Comparison) Write(w io.Writer, graphs bool) error {
	out := bufio.NewWriter(w)
	writeLines(out, c)
	if c.Requests > 0 {
		fmt.Fprintf(out, "requests: %d, %s to %s UTC\n", c.Requests, moment(&c.From), moment(&c.To))
	}
	writeRecords(out, c.Records, c.Ends)
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
