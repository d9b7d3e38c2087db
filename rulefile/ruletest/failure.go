package ruletest

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirhq/weir/fault"
)

// Failure is a step whose decision differs from the expected one. Failure is an
// error.
type Failure struct {
	Step        int          // from 1
	Differences []Difference // at least one

	test    string        // the name of the case
	request string        // the request in a line
	at      time.Time     // virtual time of the request
	after   time.Duration // at, since the start of the case
	answer  string        // the decision in a line; empty if the failure concerns several requests
	place   fault.Place   // of the first difference
}

// Difference is an expectation that is not met. Got and Want are in the form of
// [testfile.Field].
type Difference struct {
	Key       string
	Got, Want string
	place     fault.Place
}

// Error returns the failure as several lines: the place, the source line, the
// request, and a line for each difference.
func (f Failure) Error() string {
	at := fault.Fault{Place: f.place, Problem: fmt.Sprintf("case %q, step %d", f.test, f.Step)}
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n  %s\n  at %s, %v after the start\n", &at, fault.Printable(f.request),
		f.at.Format("Mon 2006-01-02 15:04:05.999999 -0700"), f.after)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range f.Differences {
		fmt.Fprintf(table, "    %s:\tgot %s,\twant %s\n", d.Key, fault.Printable(or(d.Got)), fault.Printable(or(d.Want)))
	}
	_ = table.Flush() // a strings.Builder does not fail
	if f.answer != "" {
		fmt.Fprintf(&b, "  the answer: %s\n", fault.Printable(f.answer))
	}
	return strings.TrimRight(b.String(), "\n")
}

// or returns text, or a word for an empty text.
func or(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
