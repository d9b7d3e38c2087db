package rule

import (
	"fmt"

	"github.com/weirhq/weir/fault"
	ipaddr "github.com/weirhq/weir/internal/address"
	"github.com/weirhq/weir/internal/ruleset"
)

// Network groups addresses: all that share their first bits have one key. 0 bits
// stand for the whole address.
type Network struct {
	V4 int // bits of an IPv4 address, up to 32
	V6 int // bits of an IPv6 address, up to 128
}

// check returns what is wrong with n, or an empty string.
func (n Network) check() string {
	switch {
	case n == Network{}:
		return "names no bits, want v4, v6 or both"
	case n.V4 < 0 || n.V4 > 32:
		return fmt.Sprintf("v4 is %d, want 1 to 32 bits", n.V4)
	case n.V6 < 0 || n.V6 > 128:
		return fmt.Sprintf("v6 is %d, want 1 to 128 bits", n.V6)
	}
	return ""
}

// WithAddresses returns a copy of s that reads the attributes called names as IP
// addresses: their values are canonical for tests and keys, and so are the values of
// [Equal] tests on them. Values that are no addresses stay as they are. In a set that
// [New] returns no attribute is an address.
//
// All spellings of an address have the same canonical one: blanks around it, a port,
// brackets and a zone are dropped, an IPv4 address written as IPv6 becomes IPv4, and the
// rest is as RFC 5952 has it. Text that only some programs read as an address, such as
// 009.9.9.9, is none.
func (s *Set) WithAddresses(names ...string) (*Set, error) {
	var faults fault.List
	named := make(map[string]bool, len(names))
	for i, name := range names {
		switch {
		case name == "":
			faults.Addf(fmt.Sprintf("addresses[%d]", i), "empty: want the name of an attribute")
		case named[name]:
			faults.Addf(fmt.Sprintf("addresses[%d]", i), "%s is there twice", ruleset.Quoted(name))
		}
		named[name] = true
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	c := *s
	c.compiled = s.Compiled().WithAddresses(names, func(w ruleset.Condition) ruleset.Condition {
		return conditionOf(w.Attribute, canonicalTest(w.Test), w.Trim)
	})
	return &c, nil
}

// canonicalTest returns t with the addresses in its equal tests made canonical.
func canonicalTest(t Test) Test {
	switch t := t.(type) {
	case equal:
		values := make([]string, len(t.values))
		for i, v := range t.values {
			values[i], _ = ipaddr.Canonical(v)
		}
		return Equal(values...)
	case not:
		return not{canonicalTest(t.test)}
	case all:
		tests := make(all, len(t))
		for i := range t {
			tests[i] = canonicalTest(t[i])
		}
		return tests
	}
	return t
}
