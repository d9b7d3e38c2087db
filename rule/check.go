package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// validName is what rules and outcomes may be called: safe in keys, metrics, headers.
var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$`)

const wantName = "want letters, digits, dots, dashes and underscores, a letter or digit first, up to 100"

// check finds everything that is wrong with rules and outcomes.
func check(rules []Rule, outcomes map[string]Outcome) Faults {
	var faults Faults
	for _, n := range slices.Sorted(maps.Keys(outcomes)) {
		o := outcomes[n]
		faults = append(faults, checkOutcome(n, &o)...)
	}
	known := append([]string{Allow, Deny}, slices.Sorted(maps.Keys(outcomes))...)
	first := make(map[string]int, len(rules))
	for i := range rules {
		c := checker{Rule: &rules[i], index: i, outcomes: known}
		c.checkName(first)
		c.checkWhen()
		c.checkPer()
		c.checkMeasure()
		c.checkEffect()
		if c.Kind() == Verdict {
			c.checkVerdict()
		} else {
			c.checkWindow()
		}
		faults = append(faults, c.faults...)
	}
	return faults
}

func checkOutcome(outcome string, o *Outcome) (faults Faults) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, Fault{Rule: -1, Field: "outcomes." + outcome + field, Problem: fmt.Sprintf(format, args...)})
	}
	switch {
	case outcome == Allow || outcome == Deny:
		fault("", "%s has its meaning already, choose another name", outcome)
	case !validName.MatchString(outcome):
		fault("", "%s is not a name, %s", quoted(outcome), wantName)
	}
	if o.Status != 0 && (o.Status < 100 || o.Status > 599) {
		fault(".status", "%d is not an HTTP status, want 100 to 599", o.Status)
	}
	if len(o.Body) > 0 && !json.Valid(o.Body) {
		fault(".body", "is not JSON")
	}
	return faults
}

// checker gathers the faults of one rule.
type checker struct {
	*Rule
	index    int
	outcomes []string // names that then may have
	faults   Faults
}

func (c *checker) fault(field, format string, args ...any) {
	c.faults = append(c.faults, Fault{c.index, c.Name, field, fmt.Sprintf(format, args...)})
}

func (c *checker) checkName(first map[string]int) {
	if c.Name == "" {
		c.fault("name", "is missing")
		return
	}
	if !validName.MatchString(c.Name) {
		c.fault("name", "%s is not a name, %s", quoted(c.Name), wantName)
	}
	if i, taken := first[c.Name]; taken {
		c.fault("name", "rule %d has this name too, and names keep counters apart", i+1)
	} else {
		first[c.Name] = c.index
	}
}

func (c *checker) checkWhen() {
	for _, w := range c.When {
		field := "when." + w.Attribute
		if w.Attribute == "" {
			c.fault("when", "names no attribute")
		}
		if w.Test == nil {
			c.fault(field, "has no test")
		} else if problem := impossible(w.Test); problem != "" {
			c.fault(field, "%s, so that the rule could never match", problem)
		}
	}
}

// impossible says why t can never hold, nothing where it can.
func impossible(t Test) string {
	switch t := t.(type) {
	case equal:
		if len(t.values) == 0 {
			return "lists no value"
		}
	case within:
		if t.empty() {
			return "no number is " + strings.TrimPrefix(wanted(t), "a number ")
		}
	case all:
		for _, part := range t {
			if problem := impossible(part); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (c *checker) checkPer() {
	for i, name := range c.Per {
		if name == "" {
			c.fault("per", "names no attribute")
		} else if slices.Index(c.Per, name) < i {
			c.fault("per", "%q is there twice", name)
		}
	}
}

func (c *checker) checkMeasure() {
	switch field := c.Measure.String(); c.Measure {
	case window.Count:
		if c.Of != "" {
			c.fault("sum", "%q is named, but the rule counts hits", c.Of)
		}
	case window.Sum, window.Distinct:
		if c.Of == "" {
			c.fault(field, "names no attribute")
		}
	default:
		c.fault("sum", "unknown measure, want count, sum or distinct")
	}
	if c.Measure == window.Distinct && c.Kind() == Counter {
		c.fault("distinct", "needs a limit or a trigger: without one the members of a key could not be bounded")
	}
}

// checkEffect looks at what the rule does when: limit, trigger, then, mode.
func (c *checker) checkEffect() {
	c.checkQuota()
	if c.Trigger < 0 || c.Trigger > window.MaxHits {
		c.fault("trigger", "%d: want 1 to %d", c.Trigger, window.MaxHits)
	}
	if c.Quota != nil && c.Trigger != 0 {
		c.fault("trigger", "a rule has a limit or a trigger, make two of it")
	}
	if c.Once && c.Trigger == 0 {
		c.fault("once", "is for triggers")
	}
	c.checkThen()
	if c.Mode > Off {
		c.fault("mode", "unknown, want enforce, shadow or off")
	}
	if kind := c.Kind(); c.Mode == Shadow && (kind == Trigger || kind == Counter) {
		c.fault("mode", "a %s never decides, shadow is for rules that do", kind.word())
	}
	if c.OnOutage > OutageDeny {
		c.fault("on_outage", "unknown, want local, allow or deny")
	}
	if c.CountDenied && c.Kind() != Limit {
		c.fault("count_denied", "is for rules with a limit")
	}
	if c.MaxKeys < 0 {
		c.fault("max_keys", "%d: want a number of keys, or 0 for the default", c.MaxKeys)
	}
}

func (c *checker) checkThen() {
	switch {
	case c.Then == "":
	case !slices.Contains(c.outcomes, c.Then):
		c.fault("then", "%s is not an outcome, want %s%s", quoted(c.Then), strings.Join(c.outcomes, ", "), didYouMean(c.Then, c.outcomes))
	case c.Kind() == Trigger:
		c.fault("then", "a trigger reports and never decides, drop this or use limit")
	case c.Kind() == Limit && c.Then == Allow:
		c.fault("then", "allowing what is over the limit makes no sense, to only watch use mode: shadow")
	}
}

func (c *checker) checkQuota() {
	q := c.Quota
	if q == nil {
		return
	}
	within := func(field string, n int64) {
		if n < 0 || n > window.MaxHits {
			c.fault(field, "%d: want 0 to %d", n, window.MaxHits)
		}
	}
	if q.By == "" {
		within("limit", q.Value)
		if len(q.Cases) > 0 || q.Else != nil {
			c.fault("limit.by", "names no attribute")
		}
		return
	}
	if len(q.Cases) == 0 {
		c.fault("limit", "names no value of %q and its quota", q.By)
	}
	for _, value := range q.caseNames() {
		if value == "" {
			c.fault("limit", "has a quota for an empty %q, use else", q.By)
		}
		within("limit."+value, q.Cases[value])
	}
	if q.Else != nil {
		within("limit.else", *q.Else)
	}
}

// checkVerdict refuses what only counting rules have.
func (c *checker) checkVerdict() {
	refuse := func(field string, set bool) {
		if set {
			c.fault(field, "a rule with then but no limit decides at once and counts nothing: add a limit, or drop this")
		}
	}
	refuse("per", len(c.Per) > 0)
	refuse(c.Measure.String(), c.Measure != window.Count)
	refuse("window", c.Window != window.Window{})
	refuse("after", c.After != window.After{})
	refuse("max_keys", c.MaxKeys > 0)
}

// checkWindow asks the window's own check about each quota. Where a window is
// missing another one stands in, to find what else is wrong.
func (c *checker) checkWindow() {
	r := *c.Rule
	need := func(field string, w *window.Window) {
		if *w == (window.Window{}) {
			c.fault(field, "is missing, want a length such as 1h or a period such as day")
			*w = window.Fixed(time.Hour)
		}
	}
	need("window", &r.Window)
	if r.After != (window.After{}) {
		need("after.window", &r.After.Window)
	}
	switch r.Kind() {
	case Trigger:
		c.checkLimit("trigger", &r, r.Trigger)
		return
	case Counter:
		if r.Measure != window.Distinct { // reported already
			c.checkLimit("window", &r, window.Unlimited)
		}
		return
	}
	each := func(field string, quota int64) {
		if quota >= 0 { // reported already
			c.checkLimit(field, &r, quota)
		}
	}
	q := r.Quota
	if q.By == "" {
		each("limit", q.Value)
		return
	}
	for _, value := range q.caseNames() {
		each("limit."+value, q.Cases[value])
	}
	if q.Else != nil {
		each("limit.else", *q.Else)
	}
}

// checkLimit adds what the window's check says of r with quota, which the
// rules file has at field.
func (c *checker) checkLimit(field string, r *Rule, quota int64) {
	if quota > window.MaxHits || r.Measure > window.Distinct {
		return // reported already
	}
	l := r.limit(quota)
	for _, err := range split(l.Validate()) {
		var f *window.FieldError
		if errors.As(err, &f) {
			c.faultOnce(fileField(f.Field, field), f.Problem)
		} else {
			c.faultOnce("window", err.Error())
		}
	}
}

// fileField is where a rules file has the field of a window.Limit.
func fileField(field, quota string) string {
	switch field {
	case "quota":
		return quota
	case "measure":
		return "window" // the only fault left: it cannot count members
	}
	for _, part := range []string{".kind", ".length", ".period"} {
		field = strings.TrimSuffix(field, part)
	}
	return field
}

// faultOnce adds a fault that several quotas may have in common.
func (c *checker) faultOnce(field, problem string) {
	f := Fault{c.index, c.Name, field, problem}
	if !slices.Contains(c.faults, f) {
		c.faults = append(c.faults, f)
	}
}

// split is the errors that err joins.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// word is the kind in a sentence.
func (k Kind) word() string { return [...]string{"limit", "trigger", "counter", "verdict"}[k] }
