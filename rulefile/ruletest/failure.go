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
	Summary string // the step, counted from 1, and the first difference, in one line

	test    string        // the name of the case
	step    int           // from 1
	differ  []difference  // at least one
	request string        // the request in a line
	at      time.Time     // virtual time of the request
	after   time.Duration // at, since the start of the case
	answer  string        // the decision in a line; empty if the failure concerns several requests
}

// difference is an expectation that is not met. got and want are in the form of
// [testfile.Field].
type difference struct {
	key, got, want string
	place          fault.Place
}

// Error returns the failure as several lines: the place, the source line, the
// request, and a line for each difference.
func (f Failure) Error() string {
	at := fault.Fault{Place: f.differ[0].place, Problem: fmt.Sprintf("case %q, step %d", f.test, f.step)}
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n  %s\n  at %s, %v after the start\n", &at, f.request,
		f.at.Format("Mon 2006-01-02 15:04:05.999999 -0700"), f.after)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range f.differ {
		fmt.Fprintf(table, "    %s:\tgot %s,\twant %s\n", d.key, or(d.got), or(d.want))
	}
	_ = table.Flush() // a strings.Builder does not fail
	if f.answer != "" {
		fmt.Fprintf(&b, "  the answer: %s\n", f.answer)
	}
	return strings.TrimRight(b.String(), "\n")
}

// or returns text, or a placeholder for an empty text.
func or(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
