package rulefile

import (
	"maps"

	"github.com/weirhq/weir/fault"
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
// leaves out those that a key ignore silences. Its time grows with the square of
// the number of rules: with ten thousand verdicts it is about a second.
func (f *File) Warnings() []Warning {
	if f.warnings == nil {
		return nil
	}
	return f.warnings()
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

var warningTexts = map[string]string{
	"dead-rule": `A verdict earlier in the file matches every request that this rule matches, and
ends the evaluation. The rule never counts and never decides.

Move the rule before the verdict, add conditions to the verdict, or give the
verdict "rest: count", so that the rules behind it still count.`,
	"decision-attribute": `The rule tests an attribute that has the name and a value of a part of a decision,
such as outcome: deny. A request has only the attributes that its caller sends, so
that the rule does not see what other rules decide.

To ban a key that goes over a limit, use ban. To count denied requests, use
count_denied. If the caller sends such an attribute, silence the warning.`,
	"full-width": `The name of an attribute or a plain value contains punctuation that an input
method for Chinese or Japanese writes in place of ASCII. To YAML it is text:
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
	"literal-address": `A plain value is compared as text. "10.0.0.0/8" matches only a request in which
the attribute is this text, and "2001:db8::1" does not match "2001:DB8::1".

Write {ip: 10.0.0.0/8} for addresses. If the text is no address, such as a version
number, write {equal: 1.2.3.4}.`,
	"literal-pattern": `A plain value is compared as text, so that * and the characters of regular
expressions stand for themselves. "/api/*" does not match /api/users.

Write {prefix: /api/}, {suffix: .php} or {match: "^/v[12]/"}. If the text itself
is meant, write {equal: "/api/*"}.`,
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
	"outage-without-effect": `on_outage decides for a limit while the store is out of reach. Triggers, counters,
verdicts and rules in shadow mode never deny a request because of a count, so that
on_outage changes nothing for them.

Remove the key.`,
	"pointless-limit": `Another limit that counts the same requests is always exceeded first, or at the
same time. An example is a limit of 100 a minute beside a limit of 5 an hour for
the same key: the sixth request is denied by the second one.

Remove one of them, or correct its numbers.`,
	"restart-forgets": `The window never ends. A service that counts in memory forgets its hits when it
stops, and then a trial or a voucher can be used again.

Run the service with --data or --store, and silence the warning.`,
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
	"unused": `No rule uses the list or the outcome. The name may be misspelt in a rule, or the
rule may be gone.`,
}
