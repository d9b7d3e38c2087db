package rulefile

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Warning describes a part of a rules file that is valid and probably not what
// its author means.
type Warning struct {
	// Name is the kind of the warning, one of those in [WarningTexts]. The key ignore of
	// a rule or of the file silences warnings by this name.
	Name string

	// Fault states the problem, the rule and the place.
	*fault.Fault
}

// WarningTexts returns what each kind of warning means and how to repair its cause, by
// its name.
func WarningTexts() map[string]string { return maps.Clone(warningTexts) }

// Warnings returns the warnings about the file, in the order of the file. It
// leaves out those that a key ignore silences. instances is the number of instances that decide
// by the file together; without it, they are two. Warnings compares rules with each other in a limited number of
// steps; a warning not-compared says if they were too few for the file.
func (f *File) Warnings(instances ...int64) []Warning {
	if f.warnings == nil {
		return nil
	}
	return f.warnings(slices.Max(append(instances, 2)))
}

// ignore reads the names of the warnings to silence.
func (p *pass) ignore(n *node) {
	if n == nil {
		return
	}
	p.texts(n)
	for _, item := range scalars(n) {
		if _, ok := warningTexts[item.text]; item.isScalar() && item.text != "" && !ok {
			p.fault(item, "%s", unknown("warning", item.text, sorted(warningTexts)))
		}
	}
}

// scalars returns the values of a list, or the only value.
func scalars(n *node) []*node {
	switch {
	case n == nil:
		return nil
	case n.kind == aList:
		return n.items
	}
	return []*node{n}
}

// linter collects the warnings about one file.
type linter struct {
	pass  *pass
	many  int64            // instances
	file  map[string]*node // the keys at the top of the file
	rules []rule.Rule
	nodes []*node // by rule

	list     []Warning
	silenced map[*node]bool  // the entries of keys ignore that silenced a warning
	never    map[int]bool    // rules that never apply
	held     map[string]int  // by attribute: the first rule that sums and holds it
	named    map[string]bool // names of rules
	compare  *comparison
	ignores  map[*node]map[string]*node // by a key ignore: the entry with each name
	wanted   map[string]bool            // attributes without which requests are denied
}

// lint returns the warnings about rules, which have no faults.
func (p *pass) lint(file map[string]*node, rules []rule.Rule, instances int64) []Warning {
	l := linter{pass: p, many: instances, file: file, rules: rules, nodes: make([]*node, len(rules)), silenced: map[*node]bool{}, never: map[int]bool{}, held: map[string]int{}, named: map[string]bool{}, compare: newComparison(), ignores: map[*node]map[string]*node{}, wanted: map[string]bool{}}
	for i := range rules {
		l.nodes[i] = p.item(file["rules"], i)
	}
	if len(rules) == 0 {
		l.warn(none, "no-rules", file["rules"], "the file has no rules: every request gets the outcome %s", l.unmatched())
	}
	for i := range rules {
		l.named[rules[i].Name] = true
		l.noteWanted(i)
		if r := &rules[i]; r.Mode != rule.Off && r.Hold > 0 && r.Measure == window.Sum {
			if _, has := l.held[r.Of]; !has {
				l.held[r.Of] = i
			}
		}
	}
	l.fileFullWidth()
	l.unused()
	l.whole()
	for i := range rules {
		if rules[i].Mode == rule.Off {
			continue
		}
		l.contradiction(i)
		l.fullWidth(i)
		for _, e := range cmp.Or(l.nodes[i].get("when"), &node{}).entries {
			l.wideText(i, e.key)
			l.value(i, e.key.text, e.value)
			l.repeated(i, e.value, false)
			l.decisions(i, e)
		}
		l.missingElse(i)
		l.outage(i)
		l.unreachable(i)
		l.groups(i)
		l.size(i)
		l.estimates(i)
		l.banned(i)
		l.forgotten(i)
		l.leased(i)
	}
	l.dead()
	l.pointless()
	l.names()
	if l.compare.left <= 0 {
		l.warn(none, "not-compared", file["rules"], "the file has so many similar conditions or names that not all of them were compared: some dead rules, pointless limits and similar attributes may be missing")
	}
	l.unneeded()
	slices.SortStableFunc(l.list, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return l.list
}

// none is the index of a warning about the whole file.
const none = -1

// warn adds a warning about rule i at n, if no key ignore silences it.
func (l *linter) warn(i int, name string, n *node, format string, args ...any) {
	if i != none && l.ignored(l.nodes[i].get("ignore"), name) || l.ignored(l.file["ignore"], name) {
		return
	}
	f := &fault.Fault{Problem: fmt.Sprintf(format, args...), Place: l.pass.place(n.line, n.column)}
	if i != none {
		f.Rule = l.rules[i].Name
	}
	l.list = append(l.list, Warning{name, f})
}

// ignored reports whether a key ignore has the name of a warning, and notes that it was needed.
func (l *linter) ignored(ignore *node, name string) bool {
	if ignore == nil {
		return false
	}
	by := l.ignores[ignore]
	if by == nil {
		by = map[string]*node{}
		for _, entry := range slices.Backward(scalars(ignore)) {
			by[entry.text] = entry
		}
		l.ignores[ignore] = by
	}
	entry, has := by[name]
	if has {
		l.silenced[entry] = true
	}
	return has
}

// field returns the node of a key of rule i, or that of the rule without it.
func (l *linter) field(i int, key string) *node {
	if n := l.nodes[i].get(key); n != nil {
		return n
	}
	return l.nodes[i]
}

// unmatched returns the outcome of requests that no rule decides.
func (l *linter) unmatched() string {
	if n := l.file["unmatched"]; n != nil {
		return n.text
	}
	return rule.Allow
}

// unneeded warns of keys ignore that silence nothing.
func (l *linter) unneeded() {
	check := func(i int, n *node) {
		for _, ignore := range scalars(n) {
			open := (ignore.text == "never-leased" || ignore.text == "past-quota") && l.many <= 2 // how many instances there are
			if !l.silenced[ignore] && ignore.text != "unneeded-ignore" && !open {
				l.warn(i, "unneeded-ignore", ignore, "ignore: there is no warning %s here", ignore.text)
			}
		}
	}
	for i, n := range l.nodes {
		if l.rules[i].Mode != rule.Off {
			check(i, n.get("ignore"))
		}
	}
	check(none, l.file["ignore"])
}

// koalaRow matches the outcomes that koala's calls answer with, even if no rule
// names them.
var koalaRow = regexp.MustCompile(`^koala-[0-9]+$`)

// unused warns of lists and outcomes that no rule uses.
func (l *linter) unused() {
	lists, outcomes := map[string]bool{}, map[string]bool{l.unmatched(): true}
	var note func(t rule.Test)
	note = func(t rule.Test) {
		function, arguments, parts := rule.FormOf(t)
		if function == "In" {
			lists[arguments[0]] = true
		}
		for _, part := range parts {
			note(part)
		}
	}
	for i := range l.rules {
		outcomes[l.rules[i].Then] = true
		for _, c := range l.rules[i].When {
			note(c.Test)
		}
	}
	warn := func(what string, n *node, used map[string]bool) {
		if n == nil {
			return
		}
		for _, e := range n.entries {
			if !used[e.key.text] && !koalaRow.MatchString(e.key.text) {
				l.warn(none, "unused", e.key, "no rule uses the %s %q", what, e.key.text)
			}
		}
	}
	warn("list", l.file["lists"], lists)
	warn("outcome", l.file["outcomes"], outcomes)
}

var warningTexts = map[string]string{
	"all-shadow": `All limits and verdicts of the file are in shadow mode: they are counted and reported,
and no request is denied.

Remove "mode: shadow" from the rules that have been tried. While all are on trial,
silence the warning.`,
	"ban-needs-attribute": `A rule with sum or distinct applies only to requests that have the attribute. A
request without it passes while the key is banned, so that a caller that forgets the
attribute has no ban at all.

Count requests: take before each attempt, and give the hit back after a success. Or
let another rule deny requests without the attribute: when: {errors: {absent: true}}
and then: deny. If each caller sends the attribute, 0 where nothing is to be counted,
silence the warning.`,
	"dead-rule": `A verdict earlier in the file matches every request that this rule matches, and
ends the evaluation. The rule never counts and never decides.

Move the rule before the verdict, add conditions to the verdict, or give the
verdict "rest: count", so that the rules after it still count.`,
	"decision-attribute": `The rule tests an attribute that has the name and a value of a part of a decision,
such as outcome: deny. A request has only the attributes that its caller sends, so
that the rule does not see what other rules decide.

To ban a key that goes over a limit, use ban. To count denied requests, use
count_denied. If the caller sends such an attribute, silence the warning.`,
	"duplicate-value": `A value is in a list twice, which is the same as once. Another value may have been
meant.`,
	"empty-list": `A list without values contains no request, so that a rule that tests for it never
matches, and one that tests for its contrary always does.

Add the values, or remove the list and its rules.`,
	"full-width": `The name of an attribute or a plain value contains punctuation that an input
method for Chinese or Japanese writes instead of ASCII. To YAML it is text:
[user，ip] is one attribute with a comma in its name, and “post” is a value with
the quotes in it. The rule matches no request and limits nothing.

Write the ASCII characters , : " * [ ] { }. If the text itself is meant, write
{equal: "你好，世界"}, in straight quotes.`,
	"grouped-quota": `A sliding window keeps at most "precision" dates for a key, 100 by default. Above
that, hits share dates in groups of quota/precision, rounded up. The window never
admits more than the quota. It can deny early, by at most one group less one hit:
with a quota of 300, by 2 hits.

If the quota must be exact, write {sliding: 1h, precision: 300}, with a precision
of at least the quota. A key then takes 8 bytes a hit. If a group does not matter,
silence the warning.`,
	"host-bits": `A block of addresses is written with an address in it: 10.0.0.1/8 is the whole block
10.0.0.0/8, with 16 million addresses. The address may have been meant, or a longer
prefix.

Write the block with zeros after its prefix, 10.0.0.0/8, or only the address.`,
	"literal-address": `A plain value is compared as text. "10.0.0.0/8" matches only a request in which
the attribute is this text, and "2001:db8::1" does not match "2001:DB8::1".

Write {ip: 10.0.0.0/8} for addresses. If the text is no address, such as a version
number, write {equal: 1.2.3.4}.`,
	"literal-pattern": `A plain value is compared as text, so that * and the characters of regular
expressions stand for themselves. "/api/*" does not match /api/users, nor 4xx 404.

Write {prefix: /api/}, {suffix: .php} or {match: "^/v[12]/"}. If the text itself
is meant, write {equal: "/api/*"}.`,
	"never-leased": `Instances lease a quota only if each of them can have a reasonable part of it: at least
128 for each instance, which is 4 in a 32nd of the window. The store decides each call of a
smaller one, with or without lease.

Remove lease. A rule whose quota depends on an attribute leases the keys whose quota is
large enough. weir check --nodes N tells which rules N instances lease.`,
	"missing-else": `The limit depends on an attribute and has no number for other values. The rule
does not match requests with another value, or without the attribute: they are not
limited.

Add else, such as {by: plan, free: 10, pro: 1000, else: 5}. If other requests
shall not be limited, silence the warning.`,
	"never-matches": `The conditions of the rule contradict each other, or contradict the attributes
that the rule needs for its key. No request matches the rule.`,
	"never-reports": `The trigger counts in a bucket whose burst is below the threshold. A bucket holds at
most burst hits, so that it never reaches the threshold.

Write a burst of at least the threshold, or leave burst out: it is the threshold
then.`,
	"no-rules": `The file has no rules, so that every request gets the outcome of "unmatched":
allow, by default.`,
	"not-compared": `Many rules have conditions that the same requests can meet, or many attributes are named
only once. Each would have to be compared with each other one, which takes too long, so
that the comparison ended early: some warnings dead-rule, never-matches, missing-else,
pointless-limit and similar-attribute may be missing. Faults and other warnings are complete.

Use one rule with a key (per) or a list instead of a rule for each value, or silence
the warning.`,
	"outage-without-effect": `on_outage decides for a limit while the store is unavailable. Triggers, counters,
verdicts and rules in shadow mode never deny a request because of a count, so that
on_outage changes nothing for them.

Remove the key.`,
	"past-quota": `With a credit, an instance that has no lease left admits that many hits before the
store knows of them, so that requests do not wait. In a window N instances can admit the quota
and N times the credit.

Write lease: strict, or a smaller limit, or silence the warning. weir check --nodes N tells the number
for N instances.`,
	"pointless-limit": `Another limit that counts the same requests is always exceeded first, or at the
same time. An example is a limit of 100 a minute together with a limit of 5 an hour for
the same key: the sixth request is denied by the second one. Another is a limit of
20,000 a day together with one of 10 a minute, which admits 14,400 a day.

Remove one of them, or correct its numbers.`,
	"restart-forgets": `The window never ends. A service that counts in memory forgets its hits when it
stops, and then a trial or a voucher can be used again.

Run the service with --data or --store, and silence the warning.`,
	"similar-attribute": `The attribute differs by its case from one that other rules have, or that logs and gates
give to requests. Or it occurs in one rule, and differs by a letter from one that several
rules have. To weir it is another attribute. If no caller sends it, a rule with it in when
or per matches nothing.

Correct the name. If callers send both, silence the warning.`,
	"state-too-large": `The rule's counters can take more than 256 GiB of memory: the largest state of a
key, times max_keys, which is 10 million by default.

Set max_keys to the number of keys that you expect, or choose a smaller state: a
lower precision, fewer cells, or a smaller limit on distinct values.`,
	"sum-of-estimates": `Another rule sums the same attribute and holds it: its takes count an estimate, and
a settle corrects that. This rule has no hold, so that it keeps the estimate.

Add hold to this rule, too. If it is meant to count estimates, silence the
warning.`,
	"unneeded-ignore": `The key ignore names a warning that does not occur. Remove the name, so that the
warning can tell you about a later mistake.`,
	"unused": `No rule uses the list, the outcome or the time zone. A name may be misspelt in a
rule, or the rule may be gone. Time zones are for windows of the calendar, such as
window: day.`,
}
