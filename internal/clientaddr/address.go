// Package clientaddr finds the address of the client that sent a request, behind
// proxies too, and the network that it belongs to.
package clientaddr

import (
	"fmt"
	"net/netip"
	"strings"

	ipaddr "github.com/weirhq/weir/internal/address"
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

// Proxies are the networks of trusted proxies. A nil *Proxies trusts only the nearest proxy.
type Proxies struct{ trusted []netip.Prefix }

// NewProxies reads addresses and CIDR blocks. Without any it returns nil.
func NewProxies(networks []string) (*Proxies, error) {
	if len(networks) == 0 {
		return nil, nil
	}
	p := &Proxies{}
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%q: want an address or a network such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(addr, addr.BitLen())
		}
		if addr := network.Addr(); addr.Is4In6() && network.Bits() >= mapped { // an IPv4 network written as IPv6
			network = netip.PrefixFrom(addr.Unmap(), network.Bits()-mapped)
		}
		p.trusted = append(p.trusted, network.Masked())
	}
	return p, nil
}

// mapped is the number of bits before an IPv4 address that is written as IPv6: ::ffff:0:0/96.
const mapped = 96

// Client returns the address of the client of a request that proxies forward: of
// the lists of addresses in lines, which the header has in this order, the last one
// that is not a trusted proxy's. peer is the address that the connection comes
// from, with a port. If that is not trusted, it is the client, because its header may be forged. Entries before
// one that is not an address are not trusted; the proxy that wrote it is the client then. Without a
// header, peer is the client. A nil *Proxies takes the last entry, and returns an empty string if that is no address.
func (p *Proxies) Client(peer string, lines []string) string {
	if p == nil {
		return last(lines)
	}
	client := WithoutPort(peer)
	if !p.Trusts(client) {
		return client
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != ""; {
			entry := rest
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				rest, entry = rest[:at], rest[at+1:]
			} else {
				rest = ""
			}
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			address, ok := ipaddr.Canonical(entry)
			if !ok {
				return client
			}
			if client = address; !p.Trusts(client) {
				return client
			}
		}
	}
	return client
}

// last returns the last entry of the last line, or an empty string if that is no address.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	address, ok := ipaddr.Canonical(line[strings.LastIndexByte(line, ',')+1:])
	if !ok {
		return ""
	}
	return address
}

// Trusts reports whether an address, with or without a port, is that of a trusted proxy, or empty, as that
// of the peer of a Unix socket.
func (p *Proxies) Trusts(address string) bool {
	if p == nil || address == "" || address == "@" {
		return true
	}
	addr, err := netip.ParseAddr(WithoutPort(address))
	if err != nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	for _, network := range p.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}
