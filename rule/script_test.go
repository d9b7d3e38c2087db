package rule_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// TestScripts runs testdata/*.txt. A rule is one line, its conditions before
// the bar and what it does after:
//
//	posts-per-hour: action=post user=* | per=user limit=5 window=1h
//
// A condition is attribute=value, =a,b for any of several, =* for present, or
// a test by name: =in(staff), =address(10.0.0.0/8), =not(a,b), =prefix(/x),
// =suffix(x), =match(^x), =above(5), =between(5,9), =absent(), =trim(a,b).
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		t.Parallel()
		s := script{lists: map[string]rule.Test{}, outcomes: map[string]rule.Outcome{}}
		datatest.RunTest(t, path, s.run)
	})
}

type script struct {
	set      *rule.Set
	lists    map[string]rule.Test
	outcomes map[string]rule.Outcome
}

func (s *script) run(t *testing.T, d *datatest.TestData) string {
	switch d.Cmd {
	case "list": // list NAME, an entry a line
		name := d.CmdArgs[0].Key
		l, err := rule.In(name, strings.Split(d.Input, "\n"))
		if err != nil {
			return err.Error()
		}
		s.lists[name] = l
		return "ok"
	case "outcome": // outcome NAME STATUS [allow], the body below
		status, err := strconv.Atoi(d.CmdArgs[1].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.outcomes[d.CmdArgs[0].Key] = rule.Outcome{Allow: d.HasArg("allow"), Status: status, Body: []byte(d.Input)}
		return "ok"
	case "rules":
		return s.rules(t, d)
	}
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		values := s.request(t, d, line)
		switch d.Cmd {
		case "match":
			fmt.Fprintln(&out, s.match(values))
		case "keys":
			s.keys(&out, values)
		case "why":
			s.why(&out, values)
		default:
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
	}
	return out.String()
}

// rules compiles the input and prints the attributes, the IDs with the
// argument ids, or the faults.
func (s *script) rules(t *testing.T, d *datatest.TestData) string {
	var rules []rule.Rule
	for line := range strings.Lines(d.Input) {
		rules = append(rules, s.rule(t, d, line))
	}
	set, err := rule.New(rules, s.outcomes)
	if err != nil {
		if set != nil {
			d.Fatalf(t, "got a set and an error, want one of them")
		}
		var lines []string
		for _, f := range fault.Of(err) {
			lines = append(lines, f.Summary())
		}
		return strings.Join(lines, "\n")
	}
	s.set = set
	if !d.HasArg("ids") {
		return "attributes: " + strings.Join(set.Attributes(), " ")
	}
	var out strings.Builder
	for i := range set.Len() {
		fmt.Fprintf(&out, "%q\n", set.Compiled().ID(i))
	}
	return out.String()
}

func (s *script) match(values []string) string {
	var names []string
	for _, i := range s.set.Compiled().Match(values, nil, false) {
		names = append(names, s.set.Rule(i).Name)
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, " ")
}

// keys prints what each matching rule counts for the request, and where.
func (s *script) keys(out *strings.Builder, values []string) {
	for _, i := range s.set.Compiled().Match(values, nil, false) {
		r := s.set.Rule(i)
		fmt.Fprintf(out, "%s: %q, bytes %q", r.Name, s.set.Compiled().ReadableKey(i, values), s.set.Compiled().AppendKey(nil, i, values))
		if compiled, err := s.set.Compiled().LimitOf(i, values, nil); err != nil {
			fmt.Fprintf(out, ", %v", err)
		} else if compiled != nil {
			l := *compiled.Limit
			fmt.Fprintf(out, ", quota %d in %s", l.Quota, l.Window)
			if l.Window.Precision > 0 {
				fmt.Fprintf(out, ", precision %d", l.Window.Precision)
			}
		}
		switch r.Measure {
		case window.Sum:
			if n, err := s.set.Compiled().Sum(i, values); err != nil {
				fmt.Fprintf(out, ", %v", err)
			} else {
				fmt.Fprintf(out, ", sum %d", n)
			}
		case window.Distinct:
			fmt.Fprintf(out, ", member %q", s.set.Compiled().Member(i, values))
		}
		out.WriteByte('\n')
	}
}

func (s *script) why(out *strings.Builder, values []string) {
	for i := range s.set.Len() {
		matched, reasons := s.set.Compiled().Why(i, values)
		if matched {
			reasons = []string{"matches"}
		}
		fmt.Fprintf(out, "%s: %s\n", s.set.Rule(i).Name, strings.Join(reasons, "; "))
	}
}

// request reads attribute=value words, a value in quotes where it needs them.
func (s *script) request(t *testing.T, d *datatest.TestData, line string) []string {
	values := make([]string, len(s.set.Attributes()))
	for _, w := range words(t, d, line) {
		name, value, _ := strings.Cut(w, "=")
		if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		if at, ok := s.set.Compiled().Attribute(name); ok {
			values[at] = value
		}
	}
	return values
}

// words splits line at blanks outside of quotes.
func words(t *testing.T, d *datatest.TestData, line string) []string {
	var quoted bool
	found := strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\n')
	})
	if quoted {
		d.Fatalf(t, "odd quotes in %q", line)
	}
	return found
}

func (s *script) rule(t *testing.T, d *datatest.TestData, line string) rule.Rule {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
	when, does, _ := strings.Cut(rest, "|")
	r := rule.Rule{Name: name}
	for _, w := range strings.Fields(when) {
		attribute, test, _ := strings.Cut(w, "=")
		r.When = append(r.When, s.condition(t, d, attribute, test))
	}
	for _, w := range strings.Fields(does) {
		setting, value, _ := strings.Cut(w, "=")
		s.setting(t, d, &r, setting, value)
	}
	return r
}

func (s *script) condition(t *testing.T, d *datatest.TestData, attribute, test string) rule.Condition {
	c := rule.Condition{Attribute: attribute}
	kind, arg, named := strings.Cut(strings.TrimSuffix(test, ")"), "(")
	args := strings.Split(arg, ",")
	switch {
	case test == "*":
		c.Test = rule.Present()
	case !named:
		c.Test = rule.Equal(strings.Split(test, ",")...)
	default:
		var err error
		c.Trim = kind == "trim"
		if c.Test, err = s.test(kind, args); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return c
}

func (s *script) test(kind string, args []string) (rule.Test, error) {
	number := func(arg string) *float64 {
		f, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			panic(err)
		}
		return &f
	}
	switch kind {
	case "trim":
		if args[0] == "*" {
			return rule.Present(), nil
		}
		return rule.Equal(args...), nil
	case "in":
		return s.lists[args[0]], nil
	case "address":
		return rule.Address(args...)
	case "not":
		return rule.Not(rule.Equal(args...)), nil
	case "prefix":
		return rule.Prefix(args[0]), nil
	case "suffix":
		return rule.Suffix(args[0]), nil
	case "match":
		return rule.Pattern(args[0])
	case "above":
		return rule.Within(rule.Range{Above: number(args[0])}), nil
	case "between":
		return rule.Within(rule.Range{From: number(args[0]), To: number(args[1])}), nil
	case "absent":
		return rule.Absent(), nil
	case "none":
		return rule.Equal(), nil
	case "nil":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown test %q", kind)
}

func (s *script) setting(t *testing.T, d *datatest.TestData, r *rule.Rule, setting, value string) {
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	switch setting {
	case "per":
		r.Per = strings.Split(value, ",")
	case "sum":
		r.Measure, r.Of = window.Sum, value
	case "distinct":
		r.Measure, r.Of = window.Distinct, value
	case "of":
		r.Of = value
	case "limit":
		r.Quota = quota(value, number)
	case "trigger":
		r.Trigger = number(value)
	case "near":
		r.Near = int(number(value))
	case "once":
		r.Once = true
	case "window":
		r.Window = span(t, d, value)
	case "after":
		count, base, _ := strings.Cut(value, "/")
		r.After.Count = number(count)
		r.After.Window = span(t, d, base)
	case "then":
		r.Then = value
	case "rest":
		r.CountRest = value == "count"
	case "feedback": // solved:2,failed:1
		r.Feedback = map[string]int64{}
		for f := range strings.SplitSeq(value, ",") {
			event, n, _ := strings.Cut(f, ":")
			r.Feedback[event] = number(n)
		}
	case "mode":
		r.Mode = map[string]rule.Mode{"shadow": rule.Shadow, "off": rule.Off, "unknown": 9}[value]
	case "together":
		r.Together = value
	case "count_denied":
		r.CountDenied = true
	case "export":
		r.Export = true
	case "lease":
		r.Lease = number(value)
	case "code":
		r.Code = number(value)
	case "max_keys":
		r.MaxKeys = number(value)
	case "on_outage":
		r.OnOutage = map[string]rule.Outage{"allow": rule.OutageAllow, "deny": rule.OutageDeny, "unknown": 9}[value]
	default:
		d.Fatalf(t, "unknown setting %q", setting)
	}
}

// quota reads 5, plan(free:10,pro:100,else:5), or of(customer_limit,most:1000,else:5).
func quota(value string, number func(string) int64) *rule.Quota {
	by, cases, chosen := strings.Cut(strings.TrimSuffix(value, ")"), "(")
	if !chosen {
		return &rule.Quota{Value: number(value)}
	}
	q := &rule.Quota{By: by, Cases: map[string]int64{}}
	if by == "of" {
		q.By = ""
		q.Of, cases, _ = strings.Cut(cases, ",")
	}
	for c := range strings.SplitSeq(cases, ",") {
		name, n, ok := strings.Cut(c, ":")
		switch quota := int64(0); {
		case !ok:
		case name == "else":
			quota = number(n)
			q.Else = &quota
		case name == "most" && by == "of":
			q.Most = number(n)
		default:
			q.Cases[name] = number(n)
		}
	}
	return q
}

// span reads a window: 1h, day, day@Zone, cells/24h/n, fixed/1h, bucket/1m/burst.
func span(t *testing.T, d *datatest.TestData, text string) window.Window {
	if text == "" {
		return window.Window{}
	}
	period, zone, _ := strings.Cut(text, "@")
	for p := window.Minute; p <= window.Year; p++ {
		if p.String() == period {
			return window.Calendar(p, location(t, d, zone))
		}
	}
	parts := append(strings.Split(text, "/"), "0")
	if len(parts) == 2 {
		parts = []string{"sliding", parts[0], "0"}
	}
	length, err := time.ParseDuration(parts[1])
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	switch parts[0] {
	case "cells":
		return window.Cells(length, n)
	case "fixed":
		return window.Fixed(length)
	case "bucket":
		return window.Bucket(length, int64(n))
	}
	w := window.Sliding(length)
	w.Precision = n
	return w
}

func location(t *testing.T, d *datatest.TestData, zone string) *time.Location {
	if zone == "" {
		return nil
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return l
}
