package koalafile

import (
	"cmp"
	"maps"
	"math"
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
	combined bool // {~} after the value
}

// conditions reads the keys of a rule. It returns the conditions, and the keys whose values
// get separate counters.
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
			p.warn(s, "koala lost the ! because of the blank after it, and read %q without it; weir reads it as not", s.text)
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
		p.fault(c.value, "{~} in the middle: want it once, after the last value")
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
		p.fault(c.value, "%d is too large: want a number below 2^53 = %d, up to which weir compares exactly", n, int64(exactly))
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
		names := ", which is empty"
		if len(p.lists) > 0 {
			names = ": " + strings.Join(slices.Sorted(maps.Keys(p.lists)), ", ")
		}
		p.fault(c.value, "unknown dict %q: want one of [dicts]%s", c.value.text, names)
		return nil
	case list == nil: // it has a fault, which is reported there
		return nil
	}
	return negate(list, c.not)
}

// negate returns t. With not it returns a test for values that are present and
// do not pass t.
func negate(t rule.Test, not bool) rule.Test {
	if not {
		return rule.All(rule.Present(), rule.Not(t))
	}
	return t
}

// values returns the test of `key=a,b,c`: any value, one of some texts, a
// number in ranges, or an address.
func (p *pass) values(c condition) rule.Test {
	if c.value.text == "+" {
		if c.not {
			p.fault(c.value, "!=+ never matches, since a key must be present; koala read it as =+: want that")
			return nil
		}
		return rule.Present()
	}
	var texts []string
	var plain, six, several, spans int // how many elements are of which kind
	sound := len(p.faults)
	elements := c.value.split(",")
	for _, e := range elements {
		texts = append(texts, e.text)
		switch {
		case severalAddresses(e.text):
			several++
		case isRange(e):
			spans++
		case strings.ContainsAny(e.text, "+*-"):
			p.fault(e, "%s", strange(e.text))
		case isAddress(e.text):
			plain++
			if strings.Contains(e.text, ":") {
				six++
			}
		}
	}
	switch {
	case len(elements) == 0:
		p.fault(c.value, "key %q has no value, so that the rule never matches", c.name.text)
		return nil
	case sound != len(p.faults):
		return nil
	case several > 0 || six > 0 && plain == len(elements): // IPv6 has several spellings
		return p.addresses(c, elements)
	case spans > 0:
		return p.ranges(c, elements)
	}
	return negate(rule.Equal(texts...), c.not)
}

// strange explains a value that koala also refused.
func strange(text string) string {
	switch {
	case text == "*":
		return "* stands for a number in an IPv4 address: want + for any value"
	case strings.Contains(text, "=") && strings.ContainsAny(text, " \t"):
		return "a ; is missing before the next key"
	case strings.Contains(text, "*"):
		return "a * stands for one of the four numbers of an IPv4 address, as in 10.0.*.*"
	case strings.Contains(text, "+"):
		return "a + stands for any value and must be the only value"
	}
	return "- is for ranges of whole numbers from 0 on, or of addresses: put text with - into a dict, key @ dict"
}

// addresses returns a test for IP addresses among elements.
func (p *pass) addresses(c condition, elements []piece) rule.Test {
	var patterns []string
	sound := len(p.faults)
	asText := !strings.ContainsAny(c.value.text, "+-*") // koala compared it as text
	for _, e := range elements {
		pattern := e.text
		if from, to, ok := e.cut("-"); ok {
			pattern = from.text + "-" + to.text
		}
		if !isAddress(pattern) && !severalAddresses(pattern) {
			p.fault(e, "%q is not an address, unlike the others: want separate rules for addresses and for other values", e.text)
			continue
		}
		if _, err := rule.Address(pattern); err != nil {
			p.fault(e, "%v", err)
			continue
		}
		patterns = append(patterns, pattern)
		switch {
		case asText && strings.Contains(pattern, "/"):
			p.warn(e, "koala compared %q as text, which no address matched; weir reads it as the block", pattern)
		case starInside(pattern):
			first, last := strings.ReplaceAll(pattern, "*", "0"), strings.ReplaceAll(pattern, "*", "255")
			p.warn(e, "koala read %q as everything from %s to %s; weir reads each * as one number", pattern, first, last)
		}
	}
	test, err := rule.LooseAddress(patterns...)
	if err != nil || sound != len(p.faults) {
		return nil
	}
	if !c.not {
		return test
	}
	p.warn(c.value, "koala matched no IPv6 address as outside the range; weir does")
	return rule.All(rule.Not(rule.All(rule.Not(anyAddress), rule.Not(integer))), rule.Not(test))
}

// anyAddress holds for every address. koala reads addresses as numbers: a value
// outside a range is an address or a whole number.
var anyAddress = must(rule.LooseAddress("0.0.0.0/0", "::/0"))

// starInside reports whether a * in pattern stands before a number.
func starInside(pattern string) bool {
	_, after, found := strings.Cut(pattern, "*")
	return found && strings.ContainsAny(after, "0123456789")
}

// span is a range of whole numbers. Both ends are part of it.
type span struct{ from, to int64 }

const (
	lowest, highest = math.MinInt64, math.MaxInt64

	// exactly is the limit of range bounds: values are compared as 64-bit floats, which
	// is exact for a bound below it.
	exactly = 1 << 53

	// maxSpans is the maximum number of separate ranges in one condition.
	maxSpans = 100
)

// isRange reports whether s is two whole numbers with - between. As in koala,
// the first must not be negative.
func isRange(s piece) bool {
	from, to, ok := s.cut("-")
	_, wrongFrom := strconv.ParseInt(from.text, 10, 64)
	_, wrongTo := strconv.ParseUint(to.text, 10, 63)
	return ok && wrongFrom == nil && wrongTo == nil
}

// ranges returns a test for whole numbers among elements, which are numbers and
// ranges.
func (p *pass) ranges(c condition, elements []piece) rule.Test {
	var spans []span
	sound := len(p.faults)
	for _, e := range elements {
		from, to, ok := e.cut("-")
		if !ok {
			to = from
		}
		x, wrongFrom := strconv.ParseInt(from.text, 10, 64)
		y, wrongTo := strconv.ParseInt(to.text, 10, 64)
		switch {
		case wrongFrom != nil || wrongTo != nil:
			p.fault(e, "%q is not a whole number, unlike the others: want separate rules for text and for numbers", e.text)
		case x > y:
			p.fault(e, "the range is reversed: want %d-%d", y, x)
		case x >= exactly || y >= exactly && y != highest:
			p.fault(e, "%s is too large: want numbers below 2^53 = %d, up to which weir compares exactly, or %d for no upper end",
				e.text, int64(exactly), int64(highest))
		default:
			spans = append(spans, span{x, y})
		}
	}
	if sound != len(p.faults) {
		return nil
	}
	return p.numbers(c, spans)
}

// integer holds for whole numbers of any length.
var integer = must(rule.Pattern(`^[+-]?[0-9]+$`))

func must(t rule.Test, err error) rule.Test {
	if err != nil {
		panic(err)
	}
	return t
}

// numbers returns a test for 64-bit whole numbers inside spans or, with not,
// outside them.
func (p *pass) numbers(c condition, spans []span) rule.Test {
	if spans = merged(spans); len(spans) > maxSpans {
		p.fault(c.value, "%d separate ranges: want at most %d in a condition; put many single values into a dict, key @ dict", len(spans), maxSpans)
		return nil
	}
	if c.not { // never empty: a condition cannot name all numbers
		spans = between(span{lowest, highest}, spans)
	}
	return rule.All(append([]rule.Test{integer}, inside(spans)...)...)
}

// inside returns the tests that together hold for the numbers in spans: from
// the first to the last, except those between. The ends of the 64-bit range are
// rounded: a number up to 1024 beyond them passes too.
func inside(spans []span) []rule.Test {
	hull := span{spans[0].from, spans[len(spans)-1].to}
	from, to := float64(hull.from), float64(hull.to)
	tests := []rule.Test{rule.Within(rule.Range{From: &from, To: &to})}
	if gaps := spans[1:]; len(gaps) > 0 {
		tests = append(tests, rule.Not(all(inside(between(hull, spans)))))
	}
	return tests
}

// all returns a test that holds if every one of tests does.
func all(tests []rule.Test) rule.Test {
	if len(tests) == 1 {
		return tests[0]
	}
	return rule.All(tests...)
}

// merged returns spans sorted, with overlapping and adjacent ones joined.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		last := &joined[len(joined)-1]
		if last.to == highest || s.from <= last.to+1 {
			last.to = max(last.to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// between returns the parts of hull outside spans, which are merged and inside
// hull.
func between(hull span, spans []span) []span {
	var gaps []span
	next := hull.from
	for _, s := range spans {
		if s.from > next {
			gaps = append(gaps, span{next, s.from - 1})
		}
		if s.to == hull.to {
			return gaps
		}
		next = s.to + 1
	}
	return append(gaps, span{next, hull.to})
}
