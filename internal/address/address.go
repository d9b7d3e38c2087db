// Package address reads IP addresses in the spellings that occur in requests.
package address

import (
	"net/netip"
	"strings"
)

// Canonical returns the canonical spelling of the IP address in text, and
// reports whether text holds one. All spellings of an address have the same: blanks
// around it, a port, brackets and a zone are dropped, an IPv4 address written as
// IPv6 becomes IPv4, and the rest follows RFC 5952. Text that only some programs read as an
// address, such as 009.9.9.9, is not one. It allocates nothing for text that is canonical already.
func Canonical(text string) (canonical string, ok bool) {
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
// numbers up to 255 without leading zeros. Most addresses are, and this check takes a quarter of the
// time of parsing and writing them.
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
	if addr, ok := Parse(text); ok {
		return addr, true
	}
	switch host, port, found := cutPort(text); {
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && strings.Contains(host, ":"):
		if found && !isPort(port) {
			return netip.Addr{}, false
		}
		return Parse(host[1 : len(host)-1])
	case found && isPort(port) && !strings.Contains(host, ":"):
		return Parse(host)
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
	if text == "" || len(text) > 5 || strings.Trim(text, "0123456789") != "" {
		return false
	}
	return len(text) < 5 || text <= "65535"
}

// NetworkOf returns the network of an address in the spelling of [Canonical], such as 2001:db8::/64, by its
// first v4 or v6 bits; the address where the bits for its family are 0; and text itself if it is not an address.
func NetworkOf(text string, v4, v6 int) string {
	bits := v4
	if strings.Contains(text, ":") {
		bits = v6
	}
	if bits == 0 {
		return text
	}
	addr, ok := Parse(text)
	if !ok {
		return text
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return text // unreachable for the bits of a rule
	}
	return network.String()
}

// Parse returns the address that s spells, without a zone, and as IPv4
// where it is an IPv4 address.
func Parse(s string) (netip.Addr, bool) {
	// netip allocates an error for other text, most of which this test excludes.
	if len(s) < len("::") || !strings.ContainsAny(s[:min(len(s), len("ffff:"))], ".:") {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}
