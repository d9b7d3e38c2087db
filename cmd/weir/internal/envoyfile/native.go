package envoyfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Native returns a file with weir's own rules for the limits of c, and the limits that have
// another meaning there. from is the location of the files.
//
// Native rules test the attributes of a descriptor, which are its domain and its
// entries. Calls that are denied cost nothing, and all descriptors of a call are one
// decision.
func (c *Config) Native(from string) (text []byte, differs fault.List, err error) {
	n := native{draft: rulewriter.Draft{
		Head: "yaml-language-server: $schema=weir.schema.json\n\n" +
			"Written by weir import envoy from " + from + ". The manual is docs/reference/rules.md;\n" +
			"docs/guides/envoy.md says how descriptors become requests.",
		Comments: map[string]string{},
	}}
	for _, f := range c.files {
		n.file = f
		n.ways = ways(c.domains[f.domain], nil)
		start := []rule.Condition{{Attribute: domainKey, Test: rule.Equal(f.domain)}}
		n.level(c.domains[f.domain], f.descriptors, way{conditions: start})
	}
	if len(n.draft.Rules) > 0 {
		n.differs = append(n.differs, &fault.Fault{
			Problem: "all limits: denied calls count nothing in weir; envoyproxy/ratelimit counted them. count_denied: true in a rule keeps that",
		})
	}
	text, err = rulewriter.Write(&n.draft)
	return text, n.differs, err
}

// domainKey is the attribute that has the domain.
const domainKey = "domain"

// native writes weir's own rules.
type native struct {
	file    *file
	ways    [][]string // the keys on the way to each descriptor of the domain
	draft   rulewriter.Draft
	differs fault.List
}

// way is the path to a descriptor.
type way struct {
	conditions []rule.Condition
	keys       []string // of all entries
	per        []string // of those whose values have their own counters
}

// ways returns the keys on the way to each descriptor below l.
func ways(l *level, all [][]string) [][]string {
	for _, d := range l.exact {
		all = append(all, d.keys)
		if d.below != nil {
			all = ways(d.below, all)
		}
	}
	return all
}

func (n *native) differ(d *descriptor, format string, args ...any) {
	n.differs = append(n.differs, &fault.Fault{
		Place: fault.Place{File: n.file.name, Line: d.line, Column: 1}, Problem: d.joined() + ": " + fmt.Sprintf(format, args...),
	})
}

// level adds the rules of the descriptors at the end of a way.
func (n *native) level(l *level, all []*descriptor, to way) {
	for _, d := range all {
		next := way{slices.Clone(to.conditions), append(slices.Clone(to.keys), d.key), slices.Clone(to.per)}
		switch {
		case d.key == domainKey:
			n.differ(d, "the attribute %s has the domain: left out", domainKey)
			continue
		case slices.Contains(to.keys, d.key):
			n.differ(d, "the key is on the way twice, and an attribute has one value: left out")
			continue
		case strings.Contains(d.key, "*") && d.value == "":
			n.differ(d, "a star in a key has no counterpart: left out")
			continue
		}
		for _, t := range n.tests(l, d) {
			next.conditions = append(next.conditions, rule.Condition{Attribute: d.key, Test: t})
		}
		if d.value == "" || strings.Contains(d.value, "*") && !d.share {
			next.per = append(next.per, d.key)
		}
		if d.limited && !d.Unlimited {
			n.rule(d, next)
		}
		if d.below != nil {
			n.level(d.below, d.children, next)
		}
	}
}

// tests returns the tests for the value of d. They exclude the values of more specific
// descriptors with the same key.
func (n *native) tests(l *level, d *descriptor) (tests []rule.Test) {
	wild := strings.Contains(d.value, "*")
	switch {
	case d.value != "" && !wild:
		return []rule.Test{rule.Equal(d.value)}
	case wild:
		tests = append(tests, globTest(d.value))
	}
	var values []string
	var patterns []rule.Test
	for _, other := range slices.SortedFunc(maps.Values(l.exact), func(a, b *descriptor) int { return a.line - b.line }) {
		switch {
		case other.key != d.key || other.value == "" || other == d:
		case !strings.Contains(other.value, "*"):
			if !wild || glob(d.value, other.value) {
				values = append(values, other.value)
			}
		case !wild:
			patterns = append(patterns, rule.Not(globTest(other.value)))
		case moreSpecific(other, d) && overlap(other.value, d.value):
			patterns = append(patterns, rule.Not(globTest(other.value)))
			if other.line > d.line {
				n.differ(d, "a value that %s matches, too, now counts there: the most specific pattern wins, before it was the first one", other.value)
			}
		}
	}
	if len(values) > 0 {
		tests = append(tests, rule.Not(rule.Equal(values...)))
	}
	return append(tests, patterns...)
}

// moreSpecific reports whether the pattern of a comes before that of b: it has more
// characters that are not stars or, with as many, stands above it.
func moreSpecific(a, b *descriptor) bool {
	la, lb := len(a.value)-strings.Count(a.value, "*"), len(b.value)-strings.Count(b.value, "*")
	return la > lb || la == lb && a.line < b.line
}

// overlap reports whether two patterns may match the same value. It may report true for
// patterns that do not.
func overlap(a, b string) bool {
	startA, _, _ := strings.Cut(a, "*")
	startB, _, _ := strings.Cut(b, "*")
	endA, endB := a[strings.LastIndexByte(a, '*')+1:], b[strings.LastIndexByte(b, '*')+1:]
	return (strings.HasPrefix(startA, startB) || strings.HasPrefix(startB, startA)) &&
		(strings.HasSuffix(endA, endB) || strings.HasSuffix(endB, endA))
}

// globTest returns a test that holds for the values that a pattern matches.
func globTest(pattern string) rule.Test {
	switch parts := strings.Split(pattern, "*"); {
	case len(parts) == 2 && parts[1] == "" && parts[0] != "":
		return rule.Prefix(parts[0])
	case len(parts) == 2 && parts[0] == "" && parts[1] != "":
		return rule.Suffix(parts[1])
	default:
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		t, err := rule.Pattern("(?s)^" + strings.Join(parts, ".*") + "$")
		if err != nil {
			panic(err) // quoted texts and .* are a pattern
		}
		return t
	}
}

// rule adds the rule of d.
func (n *native) rule(d *descriptor, to way) {
	if d.Quota {
		n.differ(d, "quota_mode has no counterpart: the limit denies on its own")
	}
	if len(d.Replaces) > 0 {
		n.differ(d, "replaces has no counterpart: the limits called %s count, too", strings.Join(d.Replaces, ", "))
	}
	if d.Metadata != nil {
		n.differ(d, "metadata is not passed on")
	}
	if slices.Contains(d.ValueMetric, true) || d.Detailed {
		n.differ(d, "values are not in metrics: weir top shows keys")
	}
	r := rule.Rule{
		Name: d.Rule, When: to.conditions, Per: to.per, Quota: &rule.Quota{Value: int64(d.Requests)}, Window: n.window(d),
	}
	if d.Shadow {
		r.Mode = rule.Shadow
	}
	if n.otherOrder(to.keys) {
		n.differ(d, "another descriptor has the same keys in another order, and attributes have no order: both limits count")
	}
	for _, key := range n.absent(to.keys) {
		r.When = append(r.When, rule.Condition{Attribute: key, Test: rule.Absent()})
	}
	n.draft.Rules = append(n.draft.Rules, r)
	comment := strings.Join(d.Path[1:], " / ")
	if d.Name != "" {
		comment += " (" + d.Name + ")"
	}
	n.draft.Comments[r.Name] = comment
}

// otherOrder reports whether another descriptor has the same keys in another order.
func (n *native) otherOrder(keys []string) bool {
	return slices.ContainsFunc(n.ways, func(w []string) bool {
		return len(w) == len(keys) && !slices.Equal(w, keys) &&
			!slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(w, k) })
	})
}

// absent returns the further keys of descriptors that have these keys and more.
func (n *native) absent(keys []string) (more []string) {
	for _, w := range n.ways {
		if len(w) <= len(keys) || slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(w, k) }) {
			continue
		}
		for _, k := range w {
			if !slices.Contains(keys, k) && !slices.Contains(more, k) && k != domainKey {
				more = append(more, k)
			}
		}
	}
	slices.Sort(more)
	return more
}

// calendar has the periods that stand for units, and how they differ.
var calendar = map[Unit]struct {
	period  window.Period
	differs string
}{
	Minute: {period: window.Minute},
	Hour:   {period: window.Hour},
	Day:    {period: window.Day},
	Week:   {window.Week, "weeks start on Monday, before on Thursday (window: {aligned: 7d} keeps that)"},
	Month:  {window.Month, "months are those of the calendar, before 30 days each (window: {aligned: 30d} keeps that)"},
	Year:   {window.Year, "years are those of the calendar, before 365 days each (window: {aligned: 365d} keeps that)"},
}

// window returns the window of a limit, one of the calendar if there is one.
func (n *native) window(d *descriptor) window.Window {
	c, ok := calendar[d.Unit]
	if !ok || d.Times > 1 {
		return window.Aligned(time.Duration(d.Times) * d.Unit.Length())
	}
	if c.differs != "" {
		n.differ(d, "%s", c.differs)
	}
	return window.Calendar(c.period, nil)
}
