package koalafile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/rule"
)

// condition is one `key operator value` of a rule.
type condition struct {
	name     piece
	op       string // "@", "<", ">" or "="
	value    piece
	not      bool // ! before the operator
	combined bool // {~} behind the value
}

// conditions reads the keys of a rule. It returns what must hold, and the keys
// whose values get separate counters.
func (p *pass) conditions(s piece) (when []rule.Condition, per []string) {
	apart := map[string]bool{}
	for _, part := range s.split(";") {
		c, ok := p.condition(part)
		if !ok {
			continue
		}
		name := c.name.text
		was, twice := apart[name]
		if twice {
			p.warn(part, "koala kept only the last condition on %q; in weir all of them must hold", name)
		}
		apart[name] = !c.combined && (was || !twice)
		if test := p.test(c); test != nil {
			when = append(when, rule.Condition{Attribute: name, Test: test, Trim: true})
		}
	}
	if len(s.split(";")) == 0 {
		p.fault(s, "the rule has no keys: want at least one, such as uid=+")
	}
	maps.DeleteFunc(apart, func(_ string, apart bool) bool { return !apart })
	return when, slices.Sorted(maps.Keys(apart))
}

// condition splits one condition into its parts.
func (p *pass) condition(s piece) (c condition, ok bool) {
	i := strings.IndexAny(s.text, "@<>=")
	if i < 0 {
		return p.spelledOut(s)
	}
	c.name, c.op, c.value = s.to(i), s.text[i:i+1], s.from(i+1).trim()
	if name := c.name.trim(); strings.HasSuffix(name.text, "!") {
		if !strings.HasSuffix(c.name.text, "!") {
			p.warn(s, "koala lost the ! because of the blank behind it, and read %q without it; weir reads it as not", s.text)
		}
		c.not = true
		c.name = name.to(len(name.text) - 1)
	}
	c.name = c.name.trim()
	if c.name.text == "" || strings.Contains(c.name.text, "!") {
		p.fault(s, "%q has no key: want key=value, or key!=value for not", s.text)
		return c, false
	}
	if strings.HasPrefix(c.value.text, "=") {
		p.fault(c.value, "%s= is not an operator: want =, !=, <, >, @ or !@; at most 5 is <6, at least 5 is >4", c.op)
		return c, false
	}
	return p.combine(c)
}

// spelledOut reads the operators of koala's first documentation:
// key-IN-dict and key-NOTIN-dict.
func (p *pass) spelledOut(s piece) (c condition, ok bool) {
	for _, word := range []string{"-NOTIN-", "-IN-"} {
		if c.name, c.value, ok = s.cut(word); ok {
			c.name, c.value = c.name.trim(), c.value.trim()
			c.op, c.not = "@", word == "-NOTIN-"
			break
		}
	}
	if !ok || c.name.text == "" {
		p.fault(s, "%q is not a condition: want key=value, or another of =, !=, <, >, @, !@", s.text)
		return c, false
	}
	return p.combine(c)
}

// combine cuts {~}, or {*} as in the first documentation, from the end of the
// value.
func (p *pass) combine(c condition) (condition, bool) {
	for _, sign := range []string{"{~}", "{*}"} {
		if strings.HasSuffix(c.value.text, sign) {
			c.value, c.combined = c.value.to(len(c.value.text)-len(sign)).trim(), true
			break
		}
	}
	if c.op == "=" && !strings.ContainsAny(c.value.text, "+-*") {
		c.value = c.value.without("{~}") // as koala does for a list of texts
	}
	if strings.Contains(c.value.text, "{~}") || strings.Contains(c.value.text, "{*}") {
		p.fault(c.value, "{~} in the middle: want it once, behind the last value")
		return c, false
	}
	if c.value.text == "" {
		p.fault(c.name, "key %q has no value, so that the rule never matches: want key=value, or key=+ for any", c.name.text)
		return c, false
	}
	return c, true
}

// test returns the test of a condition, or nil if the condition is wrong.
func (p *pass) test(c condition) rule.Test {
	switch c.op {
	case "@":
		return p.inDict(c)
	case "=":
		return p.values(c)
	}
	n, err := strconv.ParseInt(c.value.text, 10, 64)
	switch {
	case err != nil:
		p.fault(c.value, "%q is not a whole number: %s compares numbers; addresses are compared as key=10.0.0.1-10.0.0.9", c.value.text, c.op)
		return nil
	case n >= exactly || n <= -exactly:
		p.fault(c.value, "%d is too large: want a number below 2^53 = %d, up to which weir compares exactly", n, exactly)
		return nil
	}
	side := span{lowest, n - 1}
	if c.op == ">" {
		side = span{n + 1, highest}
	}
	return p.numbers(c, []span{side})
}

// inDict returns a test for values in a dict, as text or as an address.
func (p *pass) inDict(c condition) rule.Test {
	list, known := p.lists[c.value.text]
	switch {
	case !known:
		p.fault(c.value, "unknown dict %q: want one of [dicts]%s", c.value.text, p.dictNames())
		return nil
	case list == nil: // it has a fault of its own
		return nil
	}
	return negate(list, c.not)
}

// dictNames returns the names of the dicts, for a message.
func (p *pass) dictNames() string {
	if len(p.lists) == 0 {
		return ", which is empty"
	}
	return ": " + strings.Join(slices.Sorted(maps.Keys(p.lists)), ", ")
}

// negate returns t. With not it returns a test for values that are present and
// do not pass t.
func negate(t rule.Test, not bool) rule.Test {
	if not {
		return rule.All(rule.Present(), rule.Not(t))
	}
	return t
}
