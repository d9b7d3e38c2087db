// Package clientaddr finds the address of the client that sent a request, behind
// proxies too, and the network that it belongs to.
package clientaddr

import (
	"net/netip"
	"strings"
)

// WithoutPort returns address without its port, if it has one, and without the brackets of an
// IPv6 address.
func WithoutPort(address string) string {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return address
	}
	if i > strings.IndexByte(address, ':') && address[i-1] != ']' {
		i = len(address) // an IPv6 address without a port
	}
	return strings.Trim(address[:i], "[]")
}

// PeerGroup returns the [Group] of an address with a port.
func PeerGroup(address string) (group string, ok bool) { return Group(WithoutPort(address)) }

// Group returns the network of one client: an IPv4 address, or the first 64 bits of an IPv6 address. It
// reports whether host is an address.
func Group(host string) (group string, ok bool) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return "", false
	}
	if addr.Is4() {
		return host, true // an IPv4 address has one spelling
	}
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String(), true
		}
	}
	return addr.String(), true
}
