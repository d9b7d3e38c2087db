package koalafile

import (
	"strings"

	"github.com/weirhq/weir/rule"
)

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

// strange explains a value that koala refused, too.
func strange(text string) string {
	switch {
	case text == "*":
		return "* stands for a number in an IPv4 address: want + for any value"
	case strings.Contains(text, "=") && strings.ContainsAny(text, " \t"):
		return "a ; is missing before the next key"
	case strings.Contains(text, "*"):
		return "a * stands for one of the four numbers of an IPv4 address, as in 10.0.*.*"
	case strings.Contains(text, "+"):
		return "a + stands for any value and must stand alone"
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
			pattern = from.trim().text + "-" + to.trim().text
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
	_, behind, found := strings.Cut(pattern, "*")
	return found && strings.ContainsAny(behind, "0123456789")
}
