package rule

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	ipaddr "github.com/weirhq/weir/internal/address"
)

// Address returns a test that holds for an IP address inside one of patterns:
// an address, a CIDR block ("10.0.0.0/8"), a range that includes both ends
// ("10.0.0.1-10.0.0.9") or an IPv4 wildcard ("10.*.0.*", where each * is one
// whole number). In both patterns and values, an IPv4 address written as IPv6
// (::ffff:10.0.0.1) is the IPv4 address, and a zone (fe80::1%eth0) is dropped.
// The test never holds for text that is not an address. The error names every
// pattern that is invalid.
func Address(patterns ...string) (Test, error) {
	return newAddress(patterns, false)
}

// LooseAddress returns a test like that of [Address], with the same patterns,
// that reads two more forms of an IPv4 address in values, as some programs do:
// four numbers that start with zeros or a + (010.0.0.1 is 10.0.0.1, never octal),
// and a single number (167772161 is 10.0.0.1).
func LooseAddress(patterns ...string) (Test, error) {
	return newAddress(patterns, true)
}

func newAddress(patterns []string, loose bool) (Test, error) {
	t := address{patterns: slices.Clone(patterns), loose: loose}
	var faults []error
	for _, p := range patterns {
		like, err := t.addresses.add(p)
		if !like {
			err = fmt.Errorf("address %q: %w", p, errNoAddress)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	t.addresses.compact()
	return t, nil
}

type address struct {
	addresses addresses
	patterns  []string
	loose     bool
}

func (a address) Holds(value string) bool {
	addr, ok := ipaddr.Parse(value)
	if !ok && a.loose {
		addr, ok = parseLoose(value)
	}
	return ok && a.addresses.contain(addr)
}

func (a address) String() string {
	if a.loose {
		return "is an address, in any spelling, in " + listed(a.patterns)
	}
	return "is an address in " + listed(a.patterns)
}

// addresses is a set of IP addresses. A lookup is one binary search, even among
// millions of blocks, and a comparison with each wildcard.
type addresses struct {
	spans     []span // ascending and disjoint, after compact
	wildcards []wildcard
}

// span is an interval of addresses of one family, both ends included.
type span struct{ from, to netip.Addr }

// wildcard is the set of IPv4 addresses a with a&mask == want.
type wildcard struct{ want, mask uint32 }

// errNoAddress states what an address pattern can be.
var errNoAddress = errors.New("want an address, a CIDR block, a range like 10.0.0.1-10.0.0.9 or a wildcard like 10.1.*.*")

// add adds the addresses of pattern to a. like reports whether pattern is an
// address pattern or starts with an address; other text is no error. An error
// that wraps [errNoAddress] means that what follows the address is malformed,
// so that pattern may be an ordinary value.
func (a *addresses) add(pattern string) (like bool, err error) {
	if from, ok := ipaddr.Parse(pattern); ok {
		a.spans = append(a.spans, span{from, from})
		return true, nil
	}
	if w, ok := parseWildcard(pattern); ok {
		a.wildcards = append(a.wildcards, w)
		return true, nil
	}
	if head, tail, ok := strings.Cut(pattern, "/"); ok {
		if from, ok := ipaddr.Parse(head); ok {
			return true, a.addBlock(pattern, from, tail)
		}
	}
	if head, tail, ok := strings.Cut(pattern, "-"); ok {
		if from, ok := ipaddr.Parse(head); ok {
			return true, a.addRange(pattern, from, tail)
		}
	}
	return false, nil
}

// addBlock adds the CIDR block of an address and the number of bits in tail.
func (a *addresses) addBlock(pattern string, addr netip.Addr, tail string) error {
	if tail == "" || digits(tail) < len(tail) {
		return fmt.Errorf("address %q: %q is not a number of bits: %w", pattern, tail, errNoAddress)
	}
	shortest := 0
	if addr.Is4() && strings.Contains(pattern, ":") {
		shortest = 96 // ::ffff:10.0.0.0/104 is 10.0.0.0/8
	}
	bits, err := strconv.Atoi(tail)
	block, outside := addr.Prefix(bits - shortest)
	if err != nil || outside != nil {
		return fmt.Errorf("address %q: want %d to %d bits", pattern, shortest, shortest+addr.BitLen())
	}
	a.spans = append(a.spans, span{block.Addr(), lastOf(block)})
	return nil
}

// addRange adds the range from an address to the one in tail.
func (a *addresses) addRange(pattern string, from netip.Addr, tail string) error {
	to, ok := ipaddr.Parse(tail)
	switch {
	case !ok:
		return fmt.Errorf("address %q: %q is not an address: %w", pattern, tail, errNoAddress)
	case from.BitLen() != to.BitLen():
		return fmt.Errorf("address %q: one end is IPv4 and the other IPv6", pattern)
	case to.Less(from):
		return fmt.Errorf("address %q: the range is reversed, want %s-%s", pattern, to, from)
	}
	a.spans = append(a.spans, span{from, to})
	return nil
}

// compact sorts the spans and joins those that overlap. contain relies on it.
func (a *addresses) compact() {
	slices.SortFunc(a.spans, func(x, y span) int { return x.from.Compare(y.from) })
	joined := a.spans[:0]
	for _, s := range a.spans {
		if n := len(joined); n > 0 && !joined[n-1].to.Less(s.from) {
			if joined[n-1].to.Less(s.to) {
				joined[n-1].to = s.to
			}
			continue
		}
		joined = append(joined, s)
	}
	a.spans = slices.Clip(joined)
}

// spell reports whether value is an address in a.
func (a *addresses) spell(value string) bool {
	if len(a.spans)+len(a.wildcards) == 0 {
		return false
	}
	addr, ok := ipaddr.Parse(value)
	return ok && a.contain(addr)
}

// contain reports whether addr is in a.
func (a *addresses) contain(addr netip.Addr) bool {
	// The only span that can hold addr is the last one that starts at or before it.
	after, found := slices.BinarySearchFunc(a.spans, addr, func(s span, x netip.Addr) int { return s.from.Compare(x) })
	if found || after > 0 && !a.spans[after-1].to.Less(addr) {
		return true
	}
	if len(a.wildcards) == 0 || !addr.Is4() {
		return false
	}
	bits := ipv4(addr)
	for _, w := range a.wildcards {
		if bits&w.mask == w.want {
			return true
		}
	}
	return false
}

// parseLoose returns the IPv4 address of four numbers with dots between, or of
// one number for all four, in any form that strconv reads as a number.
func parseLoose(s string) (addr netip.Addr, ok bool) {
	if strings.Trim(s, "0123456789+-.") != "" { // strconv allocates an error for it
		return addr, false
	}
	var length uint
	switch strings.Count(s, ".") {
	case 0:
		length = 32
	case 3:
		length = 8
	default:
		return addr, false
	}
	var bits uint32
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || n >= 1<<length {
			return addr, false
		}
		bits = bits<<length | uint32(n)
	}
	return netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}), true
}

// parseWildcard parses four numbers with dots between, at least one of them *.
func parseWildcard(s string) (w wildcard, ok bool) {
	if !strings.Contains(s, "*") {
		return w, false
	}
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return w, false
	}
	for _, p := range parts {
		w.want, w.mask = w.want<<8, w.mask<<8
		if p == "*" {
			continue
		}
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return w, false
		}
		w.want, w.mask = w.want|uint32(n), w.mask|0xff
	}
	return w, true
}

// ipv4 returns the 32 bits of an IPv4 address.
func ipv4(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// lastOf returns the highest address of a block.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}
