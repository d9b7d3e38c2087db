package ruletest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile/internal/testfile"
	"github.com/weirhq/weir/window"
)

// answer is the answer to a request: a decision or an error.
type answer struct {
	d   *weir.Decision
	err error
}

// compare returns the expectations of s that a does not meet. An unexpected error is also a
// difference.
func (r *runner) compare(s *testfile.Step, a answer) (different []difference) {
	expectsError := false
	for _, want := range s.Expect {
		switch want.Key {
		case "admitted", "denied":
			continue
		case "error":
			expectsError = true
			if a.err != nil && strings.Contains(a.err.Error(), want.Want) {
				continue
			}
		}
		if got := r.value(want.Key, a); got != want.Want {
			different = append(different, difference{want.Key, got, want.Want, want.Place})
		}
	}
	if a.err != nil && !expectsError {
		return []difference{{"error", a.err.Error(), "no error", s.Place}}
	}
	return different
}

// counts returns the expected numbers of admitted and denied requests that
// differ.
func counts(s *testfile.Step, admitted, denied int) (different []difference) {
	for _, want := range s.Expect {
		got := strconv.Itoa(admitted)
		switch want.Key {
		case "denied":
			got = strconv.Itoa(denied)
		case "admitted":
		default:
			continue
		}
		if got != want.Want {
			different = append(different, difference{want.Key, got, want.Want, want.Place})
		}
	}
	return different
}

// value returns the value of a field of an answer, in the form of
// [testfile.Field].
func (r *runner) value(key string, a answer) string {
	if a.err != nil {
		return "error: " + a.err.Error()
	}
	d := a.d
	switch key {
	case "allowed":
		return strconv.FormatBool(d.Allowed)
	case "outcome":
		return d.Outcome
	case "rule":
		return cmp.Or(d.Rule, "none")
	case "retry_after":
		return wait(d.RetryAfter)
	case "retry_rule":
		return cmp.Or(d.RetryRule, "none")
	case "unmatched":
		return strconv.FormatBool(d.Unmatched)
	case "matched":
		return strings.Join(matched(d), " ")
	case "verdicts":
		return strings.Join(d.Verdicts, " ")
	case "triggered":
		return strings.Join(d.Triggered, " ")
	case "error":
		return "no error"
	}
	key = strings.TrimPrefix(key, "limits.")
	dot := strings.LastIndexByte(key, '.') // names of rules can contain dots
	for i := range d.Usages {
		if u := &d.Usages[i]; u.Rule == key[:dot] {
			return number(u, key[dot+1:])
		}
	}
	return "the rule does not match"
}

func number(u *weir.Usage, field string) string {
	count := func(n int64) string {
		if n == window.Unlimited {
			return "unlimited"
		}
		return strconv.FormatInt(n, 10)
	}
	switch field {
	case "allowed":
		return strconv.FormatBool(u.Allowed)
	case "key":
		return u.Key
	case "held":
		return strconv.FormatBool(u.Held)
	case "banned":
		return strconv.FormatBool(u.BannedUntil != 0)
	case "quota":
		return count(u.Quota)
	case "used":
		return count(u.Used)
	case "remaining":
		return count(u.Remaining)
	case "retry_after":
		return wait(u.RetryAfter)
	}
	return wait(u.ResetAfter)
}

func wait(d time.Duration) string {
	if d == window.Never {
		return "never"
	}
	return d.String()
}

// matched returns the names of all rules that matched: limits, triggers, counters
// and verdicts.
func matched(d *weir.Decision) (names []string) {
	has := map[string]bool{}
	for i := range d.Usages {
		has[d.Usages[i].Rule] = true
	}
	for _, name := range d.Verdicts {
		has[name] = true
	}
	for i := range d.Rules.Len() {
		if name := d.Rules.Rule(i).Name; has[name] {
			names = append(names, name)
		}
	}
	return names
}

// String returns the answer in a line.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	d := a.d
	var b strings.Builder
	b.WriteString(d.Outcome)
	if d.Rule != "" {
		fmt.Fprintf(&b, " by %s", d.Rule)
	}
	if !d.Allowed {
		fmt.Fprintf(&b, ", retry after %s", wait(d.RetryAfter))
	}
	if d.Unmatched {
		b.WriteString(", no rule matched")
	}
	for i := range d.Usages {
		u := &d.Usages[i]
		fmt.Fprintf(&b, "; %s used %s", u.Rule, number(u, "used"))
		if u.Quota != window.Unlimited {
			fmt.Fprintf(&b, " of %d", u.Quota)
		}
	}
	return b.String()
}

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
		fmt.Fprintf(table, "    %s:\tgot %s,\twant %s\n", d.key, cmp.Or(d.got, "none"), cmp.Or(d.want, "none"))
	}
	_ = table.Flush() // a strings.Builder does not fail
	if f.answer != "" {
		fmt.Fprintf(&b, "  the answer: %s\n", f.answer)
	}
	return strings.TrimRight(b.String(), "\n")
}
