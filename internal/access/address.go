package access

import (
	"net/netip"
	"strings"
)

// withoutPort returns address without its port, and without the brackets of an
// IPv6 address.
func withoutPort(address string) string {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return address
	}
	return strings.Trim(address[:i], "[]")
}

// groupOf returns what stands for the network of one client: an IPv4 address, or
// the first 64 bits of an IPv6 address. Text that is no address is a group of its
// own.
func groupOf(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
