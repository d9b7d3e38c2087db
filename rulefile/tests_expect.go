package rulefile

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile/internal/testfile"
	"github.com/weirhq/weir/window"
)

// expectKeys has a row for each key below expect, with the function that reads
// its value as text.
var expectKeys = []struct {
	key  string
	read func(t *testPass, n *node) string
}{
	{"allowed", (*testPass).truth},
	{"outcome", (*testPass).outcomeName},
	{"rule", (*testPass).ruleOrNone},
	{"retry_after", (*testPass).wait},
	{"retry_rule", (*testPass).ruleOrNone},
	{"unmatched", (*testPass).truth},
	{"matched", (*testPass).ruleList},
	{"verdicts", (*testPass).ruleList},
	{"triggered", (*testPass).ruleList},
	{"admitted", (*testPass).number},
	{"denied", (*testPass).number},
	{"error", func(t *testPass, n *node) string { return t.text(n) }},
}

// limitKeys are the keys of a rule below limits.
var limitKeys = []struct {
	key  string
	read func(t *testPass, n *node) string
}{
	{"allowed", (*testPass).truth},
	{"key", func(t *testPass, n *node) string { return t.text(n) }},
	{"held", (*testPass).truth},
	{"banned", (*testPass).truth},
	{"quota", (*testPass).number},
	{"used", (*testPass).number},
	{"remaining", (*testPass).number},
	{"retry_after", (*testPass).wait},
	{"reset_after", (*testPass).wait},
}

// expect reads what a step expects.
func (t *testPass) expect(n *node) (fields []testfile.Field) {
	if n == nil {
		return nil
	}
	known := []string{}
	for _, k := range expectKeys {
		known = append(known, k.key)
	}
	known = append(known, "limits")
	f := t.fields(n, known)
	for _, k := range expectKeys {
		if v := f[k.key]; v != nil {
			fields = append(fields, testfile.Field{Key: k.key, Want: k.read(t, v), Place: t.place(v.line, v.column)})
		}
	}
	return append(fields, t.limits(f["limits"])...)
}

// limits reads the expected numbers of rules.
func (t *testPass) limits(n *node) (fields []testfile.Field) {
	if n == nil {
		return nil
	}
	if n.kind != aTable {
		t.fault(n, "limits is %s, want rules with their numbers, such as {posts: {used: 3}}", n)
		return nil
	}
	known := []string{}
	for _, k := range limitKeys {
		known = append(known, k.key)
	}
	for _, e := range t.unique(n) {
		name := t.ruleName(e.key)
		f := t.fields(e.value, known)
		for _, k := range limitKeys {
			if v := f[k.key]; v != nil {
				fields = append(fields, testfile.Field{Key: "limits." + name + "." + k.key, Want: k.read(t, v), Place: t.place(v.line, v.column)})
			}
		}
	}
	return fields
}

func (t *testPass) truth(n *node) string {
	t.yes(n)
	return n.text
}

func (t *testPass) number(n *node) string {
	t.whole(n, 0, window.MaxHits)
	return n.text
}

// wait reads a length of time, 0 or never.
func (t *testPass) wait(n *node) string {
	if n.text == "never" {
		return n.text
	}
	return t.lengthOrZero(n, []string{"never"}).String()
}

func (t *testPass) outcomeName(n *node) string {
	name := t.text(n)
	if _, ok := t.tests.Rules.Outcome(name); !ok && name != "" {
		t.fault(n, "%s", unknown("outcome", name, t.outcomeNames()))
	}
	return name
}

// outcomeNames returns the names of the outcomes that rules give.
func (t *testPass) outcomeNames() []string {
	names := map[string]bool{rule.Allow: true, rule.Deny: true}
	set := t.tests.Rules
	for i := range set.Len() {
		if then := set.Rule(i).Then; then != "" {
			names[then] = true
		}
	}
	return sorted(names)
}

// ruleOrNone reads the name of a rule, or none.
func (t *testPass) ruleOrNone(n *node) string {
	if n.text == "none" {
		return n.text
	}
	return t.ruleName(n)
}

// ruleList reads a list of rules, which can be empty.
func (t *testPass) ruleList(n *node) string {
	if n.kind != aList {
		return t.ruleName(n)
	}
	var names []string
	for _, item := range n.items {
		names = append(names, t.ruleName(item))
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, _ := t.tests.Rules.Find(a)
		y, _ := t.tests.Rules.Find(b)
		return x - y
	})
	return strings.Join(names, " ")
}
