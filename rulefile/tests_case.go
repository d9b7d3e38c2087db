package rulefile

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile/internal/testfile"
)

// testPass is a pass over a test file.
type testPass struct {
	*pass
	tests testfile.File

	// The case that is being read.
	start, now time.Time
	receipts   map[string]bool // the names of takes so far
}

var (
	caseKeys = []string{"name", "start", "timezone", "steps"}
	verbKeys = []string{"take", "check", "record", "refund", "settle", "cancel", "renew", "forget"}
	stepKeys = append(slices.Clone(verbKeys), "at", "wait", "hits", "feedback", "receipt", "of", "repeat", "every", "expect")
	ending   = []string{"settle", "cancel", "renew"} // the verbs that end or prolong holds
)

// defaultStart is when a case starts that sets no start.
var defaultStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// latest is the end of the time of cases.
var latest = time.Date(2201, time.January, 1, 0, 0, 0, 0, time.UTC)

// maxRepeat bounds the requests of a step.
const maxRepeat = 1_000_000

func (t *testPass) cases(root, n *node) {
	if n == nil || n.kind != aList || len(n.items) == 0 {
		at := n
		if at == nil {
			at = root
		}
		t.fault(at, "there are no cases: want a list under cases:, such as - {name: posts, steps: [{take: {user: 42}}]}")
		return
	}
	first := map[string]int{}
	for _, item := range n.items {
		item.label = "a case"
		c := t.readCase(item)
		if line := first[c.Name]; line > 0 && c.Name != "" {
			t.fault(item, "a case called %q stands in line %d already: want another name", c.Name, line)
		}
		first[c.Name] = item.line
		t.tests.Cases = append(t.tests.Cases, c)
	}
}

func (t *testPass) readCase(n *node) testfile.Case {
	var c testfile.Case
	f := t.fields(n, caseKeys)
	if f == nil {
		return c
	}
	if f["name"] == nil {
		t.fault(n, "a case has no name: want one, such as name: five posts an hour")
	}
	c.Name = t.text(f["name"])
	zone := t.zone
	if z := f["timezone"]; z != nil {
		zone = t.timezone(z)
	}
	d := defaultStart
	c.Start = time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, zone)
	if s := f["start"]; s != nil {
		if at, ok := t.date(s, zone); ok {
			c.Start = at
		}
	}
	t.start, t.now, t.receipts = c.Start, c.Start, map[string]bool{}
	steps := f["steps"]
	if steps == nil || steps.kind != aList || len(steps.items) == 0 {
		t.fault(n, "the case has no steps: want a list under steps:, such as - {take: {user: 42}, expect: {allowed: true}}")
		return c
	}
	for _, item := range steps.items {
		item.label = "a step"
		c.Steps = append(c.Steps, t.step(item))
	}
	return c
}

func (t *testPass) step(n *node) testfile.Step {
	s := testfile.Step{Place: t.place(n.line, n.column), Repeat: 1}
	before := len(t.faults)
	f := t.fields(n, stepKeys)
	if f == nil {
		return s
	}
	t.moment(n, f["at"], f["wait"])
	s.At = t.now
	s.Hits = t.whole(f["hits"], 1, 1<<53-1)
	s.Feedback = t.text(f["feedback"])
	if r := f["repeat"]; r != nil {
		s.Repeat = int(max(1, t.whole(r, 1, maxRepeat)))
	}
	if e := f["every"]; e != nil {
		s.Every = t.duration(e, nil)
	}
	t.repeat(n, &s)
	for _, verb := range verbKeys {
		switch v := f[verb]; {
		case v == nil:
		case s.Verb != "":
			t.fault(v, "the step has %s and %s: want one of them", s.Verb, verb)
		default:
			s.Verb = verb
			s.Attributes = t.attributes(v)
		}
	}
	if s.Verb == "" && f["expect"] != nil {
		t.fault(f["expect"], "the step has no request to expect an answer of: want one of %s", either(verbKeys))
	}
	if s.Verb == "" && f["at"] == nil && f["wait"] == nil && len(t.faults) == before {
		t.fault(n, "the step does nothing: want one of %s, or at or wait", either(verbKeys))
	}
	t.checkKeys(s.Verb, f)
	s.Receipt = t.receipt(n, s.Verb, f["receipt"])
	s.Rule = t.ruleName(f["of"])
	s.Expect = t.expect(f["expect"])
	return s
}

// repeat moves the time of the case to that of the last request of s.
func (t *testPass) repeat(n *node, s *testfile.Step) {
	if s.Every > 0 && int64(s.Repeat-1) > int64(latest.Sub(t.now)/s.Every) {
		t.fault(n, "the step ends after the year %d", latest.Year()-1)
		s.Repeat = 1
	}
	t.now = t.now.Add(time.Duration(s.Repeat-1) * s.Every)
}

// receipt reads the name of a take: of the take in this step, or of the one whose holds the
// step ends.
func (t *testPass) receipt(step *node, verb string, n *node) string {
	name := t.text(n)
	switch {
	case slices.Contains(ending, verb) && n == nil:
		t.fault(step, "%s does not name the take whose holds it is about: want receipt: NAME here and in the take", verb)
	case slices.Contains(ending, verb) && name != "" && !t.receipts[name]:
		t.fault(n, "%s", unknown("receipt", name, sorted(t.receipts)))
	case n != nil && verb != "take" && verb != "" && !slices.Contains(ending, verb):
		t.fault(n, "receipt is for take, %s", either(ending))
	case verb == "take":
		t.receipts[name] = true
	}
	return name
}

// checkKeys reports keys that the verb does not allow.
func (t *testPass) checkKeys(verb string, f map[string]*node) {
	if n := f["feedback"]; n != nil && verb != "refund" {
		t.fault(n, "feedback is for refund")
	}
	if n := f["feedback"]; n != nil && f["hits"] != nil {
		t.fault(f["hits"], "feedback and hits exclude each other: the rules state the hits of a feedback")
	}
	if n := f["feedback"]; n != nil {
		t.checkFeedback(n)
	}
	if n := f["of"]; n != nil && verb != "forget" {
		t.fault(n, "of is for forget")
	}
	if verb != "forget" {
		return
	}
	if f["of"] == nil {
		t.fault(f["forget"], "forget does not name the rule whose counter is dropped: want of: RULE next to it")
	}
	for _, key := range []string{"hits", "expect"} {
		if n := f[key]; n != nil {
			t.fault(n, "%s does not go with forget", key)
		}
	}
}

// checkFeedback reports an event that no rule has.
func (t *testPass) checkFeedback(n *node) {
	var known []string
	for i := range t.tests.Rules.Len() {
		known = slices.AppendSeq(known, maps.Keys(t.tests.Rules.Rule(i).Feedback))
	}
	slices.Sort(known)
	if !slices.Contains(known, n.text) {
		t.fault(n, "no rule has the feedback %q%s", n.text, fault.DidYouMean(n.text, known))
	}
}

// attributes reads the attributes of a request.
func (t *testPass) attributes(n *node) (attributes []string) {
	switch {
	case n.kind == nothing:
		return nil
	case n.kind != aTable:
		t.fault(n, "%s is %s, want attributes, such as {action: post, user: 42}", n.label, n)
		return nil
	}
	for _, e := range t.unique(n) {
		name := e.key.text
		known := t.tests.Rules.Attributes()
		if hint := fault.DidYouMean(name, known); hint != "" && !slices.Contains(known, name) {
			t.fault(e.key, "no rule uses the attribute %q%s", name, hint)
		}
		attributes = append(attributes, name, t.text(e.value))
	}
	return attributes
}

// ruleName reads the name of a rule.
func (t *testPass) ruleName(n *node) string {
	name := t.text(n)
	if name == "" {
		return ""
	}
	if _, ok := t.tests.Rules.Find(name); !ok {
		t.fault(n, "%s", unknown("rule", name, t.ruleNames()))
	}
	return name
}

func (t *testPass) ruleNames() []string {
	set := t.tests.Rules
	names := make([]string, set.Len())
	for i := range names {
		names[i] = set.Rule(i).Name
	}
	return names
}

// moment moves the time of the case to that of a step.
func (t *testPass) moment(n, at, wait *node) {
	var next time.Time
	switch {
	case at != nil && wait != nil:
		t.fault(wait, "at and wait exclude each other: want one of them")
		return
	case wait != nil:
		next = t.later(wait)
	case at == nil:
		return
	case !strings.Contains(at.text, "-"):
		next = t.start.Add(t.lengthOrZero(at, nil))
	default:
		var ok bool
		if next, ok = t.date(at, t.start.Location()); !ok {
			return
		}
	}
	if next.After(latest) {
		t.fault(n, "the step is after the year %d", latest.Year()-1)
		return
	}
	if next.Before(t.now) {
		t.fault(at, "at is before the step above, which ends at %s (%v after the start): steps are in the order of time",
			t.now.Format(dateForm), t.now.Sub(t.start))
		return
	}
	t.now = next
}
