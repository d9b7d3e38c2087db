package rule

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
)

// CanonicalAddress returns the canonical spelling of the IP address in text, and
// reports whether text holds one. All spellings of an address have the same: blanks
// around it, a port, brackets and a zone are dropped, an IPv4 address written as
// IPv6 becomes IPv4, and the rest is as RFC 5952 has it. Text that only some
// programs read as an address, such as 009.9.9.9, is none. It allocates nothing
// for text that is canonical already.
func CanonicalAddress(text string) (canonical string, ok bool) {
	if isPlainIPv4(text) {
		return text, true
	}
	addr, ok := anyAddress(text)
	if !ok {
		return text, false
	}
	var buffer [48]byte
	if b := addr.AppendTo(buffer[:0]); string(b) != text {
		return string(b), true
	}
	return text, true
}

// isPlainIPv4 reports whether text is the canonical spelling of an IPv4 address: four
// numbers up to 255 without leading zeros. Most addresses are, and finding that out takes
// a quarter of the time of parsing and writing them.
func isPlainIPv4(text string) bool {
	if len(text) > len("255.255.255.255") {
		return false
	}
	dots, digits, n := 0, 0, 0
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '.':
			if digits == 0 {
				return false
			}
			dots, digits, n = dots+1, 0, 0
		case c < '0' || c > '9' || digits > 0 && n == 0:
			return false
		default:
			digits, n = digits+1, n*10+int(c-'0')
			if n > 255 {
				return false
			}
		}
	}
	return dots == 3 && digits > 0
}

// anyAddress returns the address in text, which may be followed by a port.
func anyAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if addr, ok := parseAddress(text); ok {
		return addr, true
	}
	switch host, port, found := cutPort(text); {
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && strings.Contains(host, ":"):
		if found && !isPort(port) {
			return netip.Addr{}, false
		}
		return parseAddress(host[1 : len(host)-1])
	case found && isPort(port) && !strings.Contains(host, ":"):
		return parseAddress(host)
	}
	return netip.Addr{}, false
}

// cutPort cuts text before its last colon that is not in brackets.
func cutPort(text string) (host, port string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || i < strings.LastIndexByte(text, ']') {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// isPort reports whether text is a number from 0 to 65535.
func isPort(text string) bool {
	if text == "" || len(text) > 5 || digits(text) < len(text) {
		return false
	}
	return len(text) < 5 || text <= "65535"
}

// Network groups addresses: all that share their first bits have one key. 0 bits
// stand for the whole address.
type Network struct {
	V4 int // bits of an IPv4 address, up to 32
	V6 int // bits of an IPv6 address, up to 128
}

// Of returns the network of the address in text, such as 2001:db8::/64; the
// canonical address where n has no bits for its family; and text itself if it is
// no address.
func (n Network) Of(text string) string {
	addr, ok := anyAddress(text)
	if !ok {
		return text
	}
	bits := n.V6
	if addr.Is4() {
		bits = n.V4
	}
	if bits == 0 {
		text, _ = CanonicalAddress(text)
		return text
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return text // unreachable after check
	}
	return network.String()
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

// String returns n as "v4/24 v6/64".
func (n Network) String() string {
	var parts []string
	if n.V4 > 0 {
		parts = append(parts, fmt.Sprintf("v4/%d", n.V4))
	}
	if n.V6 > 0 {
		parts = append(parts, fmt.Sprintf("v6/%d", n.V6))
	}
	return strings.Join(parts, " ")
}

// network is a value of a vector that is made of another one.
type network struct {
	from int // the position of the address
	of   Network
}

// WithAddresses returns a copy of s that reads the attributes called names as IP
// addresses: their values are canonical ([CanonicalAddress]) for tests and keys, and
// so are the values of [Equal] tests on them. Values that are no addresses stay as
// they are. In a set that [New] returns no attribute is an address.
func (s *Set) WithAddresses(names ...string) (*Set, error) {
	var faults fault.List
	for i, name := range names {
		switch {
		case name == "":
			faults.Addf(fmt.Sprintf("addresses[%d]", i), "empty: want the name of an attribute")
		case slices.Index(names, name) < i:
			faults.Addf(fmt.Sprintf("addresses[%d]", i), "%s is there twice", quoted(name))
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	c := *s
	c.addresses, c.rules = nil, slices.Clone(s.rules)
	for _, name := range names {
		if at, ok := s.Attribute(name); ok {
			c.addresses = append(c.addresses, at)
		}
	}
	for i := range c.rules {
		r := &c.rules[i]
		r.when = slices.Clone(r.when)
		for k := range r.when {
			if slices.Contains(c.addresses, r.when[k].at) {
				r.when[k].test = canonicalTest(r.when[k].test)
			}
		}
	}
	c.index = newIndex(c.rules)
	return &c, nil
}

// canonicalTest returns t with canonical addresses in place of others in its equal
// tests.
func canonicalTest(t Test) Test {
	switch t := t.(type) {
	case equal:
		values := make([]string, len(t.values))
		for i, v := range t.values {
			values[i], _ = CanonicalAddress(v)
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

// Addresses returns the sorted names of the attributes that rules use and that are
// addresses.
func (s *Set) Addresses() []string {
	var names []string
	for _, at := range s.addresses {
		names = append(names, s.attributes[at])
	}
	slices.Sort(names)
	return names
}

// Width returns the length of a vector of values: one place for each attribute, and
// one for each network.
func (s *Set) Width() int { return len(s.attributes) + len(s.networks) }

// Complete makes the addresses in values canonical, and fills in their networks.
// values has the length [Set.Width] and the attributes at the positions of
// [Set.Attribute].
func (s *Set) Complete(values []string) {
	if len(s.addresses)+len(s.networks) > 0 { // so that the call is inlined for other sets
		s.complete(values)
	}
}

func (s *Set) complete(values []string) {
	for _, at := range s.addresses {
		if values[at] != "" {
			values[at], _ = CanonicalAddress(values[at])
		}
	}
	for i := range s.networks {
		n := &s.networks[i]
		values[len(s.attributes)+i] = n.of.Of(values[n.from])
	}
}
