package rulefile

import (
	"regexp/syntax"

	"github.com/weirhq/weir/rule"
)

// matcherKeys are the tests that a table below when can contain.
var matcherKeys = []string{
	"equal", "not", "all", "in", "above", "below", "from", "to", "ip", "loose_ip", "prefix", "suffix", "match", "absent", "trim",
}

// when reads the conditions of a rule, in the file's order.
func (p *pass) when(n *node) []rule.Condition {
	if n == nil {
		return nil
	}
	if n.kind != aTable {
		p.fault(n, "when is %s, want a table of attributes and tests, such as {action: post}", n)
		return nil
	}
	var all []rule.Condition
	for _, e := range p.unique(n) {
		c := rule.Condition{Attribute: e.key.text}
		if c.Attribute == "" {
			p.fault(e.key, "an attribute has no name, want text before the colon")
		}
		if t := e.value.get("trim"); t != nil {
			c.Trim = p.yes(t)
		}
		c.Test = p.test(e.value, true)
		all = append(all, c)
	}
	return all
}

// test reads a condition on an attribute. Only the outermost table of a
// condition may have trim, not one within a not or an all.
func (p *pass) test(n *node, outermost bool) rule.Test {
	switch n.kind {
	case aTable:
		return p.tests(n, outermost)
	case aList:
		for _, item := range n.items {
			if item.text == "*" && item.quoted {
				p.fault(item, `"*" stands for any value and needs no other values: want %s: "*"`, n.label)
			}
		}
		return rule.Equal(p.texts(n)...)
	case nothing:
		p.fault(n, `%s is empty: want a value, "*" for any, or {absent: true} for none`, n.label)
		return rule.Present()
	}
	switch n.text {
	case "":
		p.fault(n, `%s is "": a missing attribute is the same as an empty one, write {absent: true}`, n.label)
		fallthrough
	case "*":
		return rule.Present()
	}
	return rule.Equal(p.texts(n)...)
}

// tests reads a table of tests, all of which must hold.
func (p *pass) tests(n *node, outermost bool) rule.Test {
	f := p.fields(n, matcherKeys)
	var all []rule.Test
	var within rule.Range
	for _, bound := range []struct {
		key string
		to  **float64
	}{{"above", &within.Above}, {"below", &within.Below}, {"from", &within.From}, {"to", &within.To}} {
		if v := f[bound.key]; v != nil {
			number := p.number(v)
			*bound.to = &number
		}
	}
	if within != (rule.Range{}) {
		all = append(all, rule.Within(within))
	}
	for _, key := range matcherKeys {
		if v := f[key]; v != nil {
			if t := p.one(key, v); t != nil {
				all = append(all, t)
			}
		}
	}
	switch {
	case f["trim"] != nil && !outermost:
		p.fault(f["trim"], "trim is for the attribute as a whole: write it outside of not and all")
	case f["absent"] != nil && len(all) > 1:
		p.fault(f["absent"], "absent leaves nothing for the other tests: want only absent")
	case len(all) == 0 && len(n.entries) == 0:
		p.fault(n, "%s has no test: want one of %s", n.label, either(matcherKeys))
	case len(all) == 0 && f["trim"] != nil && len(f) == 1:
		p.fault(n, `%s is trimmed, but not tested: add a test, such as not: {absent: true} for any value`, n.label)
	}
	if len(all) == 1 {
		return all[0]
	}
	return rule.All(all...)
}

// one reads the test under key. It returns nil for keys that its caller reads.
func (p *pass) one(key string, n *node) rule.Test {
	switch key {
	case "equal":
		return rule.Equal(p.texts(n)...)
	case "not":
		return rule.Not(p.test(n, false))
	case "all":
		return p.all(n)
	case "in":
		return p.in(n)
	case "ip":
		return p.addresses(n, rule.Address)
	case "loose_ip":
		return p.addresses(n, rule.LooseAddress)
	case "prefix":
		return rule.Prefix(p.text(n))
	case "suffix":
		return rule.Suffix(p.text(n))
	case "match":
		re := p.text(n)
		if p.patterns += patternSize(re); p.patterns > maxPatterns {
			p.fault(n, "the patterns up to here are too large together: a part in {n} counts n times")
			return rule.Present()
		}
		test, err := rule.Pattern(re)
		if err == nil {
			return test
		}
		if re != "" {
			p.fault(n, "%v", err)
		}
		return rule.Present()
	case "absent":
		if !p.yes(n) && n.kind == aBoolean {
			p.fault(n, `absent is false: for any value write "*"`)
		}
		return rule.Absent()
	}
	return nil
}

// all reads a list of tests, for tests that one table cannot have.
func (p *pass) all(n *node) rule.Test {
	if len(n.items) == 0 { // or no list at all
		p.fault(n, "all has no list of tests: want some, such as [{not: curl}, {not: {prefix: Go}}]")
		return rule.Present()
	}
	tests := make([]rule.Test, len(n.items))
	for i, item := range n.items {
		tests[i] = p.test(item, false)
	}
	return rule.All(tests...)
}

// in reads the name of a list.
func (p *pass) in(n *node) rule.Test {
	if n.kind == aList {
		p.fault(n, "in is a list, want the name of one under lists:; for values written here leave in out")
		return rule.Present()
	}
	name := p.text(n)
	list, ok := p.lists[name]
	if !ok && name != "" && len(p.faults) < maxFaults {
		p.fault(n, "%s", unknown("list", name, p.listNames))
	}
	if list == nil { // there is none, or it has faults of its own
		return rule.Present()
	}
	return list
}

// addresses reads IP addresses, ranges and wildcards.
func (p *pass) addresses(n *node, of func(patterns ...string) (rule.Test, error)) rule.Test {
	patterns := p.texts(n)
	test, err := of(patterns...)
	if err == nil {
		return test
	}
	for _, item := range scalars(n) {
		if _, err := rule.Address(item.text); err != nil && item.text != "" {
			p.fault(item, "%v", err)
		}
	}
	return rule.Present()
}

// maxPatterns is the maximum size of all patterns of a file, in steps of their programs, of which each takes some hundred
// bytes. A short pattern can have three million.
const maxPatterns = 1_000_000

// patternSize returns about the number of steps of a pattern's program, or 0 for text that is no pattern.
func patternSize(re string) int {
	tree, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return 0
	}
	return stepsOf(tree)
}

func stepsOf(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 16 // the program can have them in each step
	}
	for _, sub := range re.Sub {
		n += stepsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return n
}
