package access

import (
	"net/netip"
	"strings"

	"github.com/weirhq/weir/internal/clientaddr"
)

// Hosts are the names under which callers reach the service. A web page can point
// a name of its own at a loopback address, and then call the service as if it were
// of the same origin; the header Host tells such calls from others.
//
// IP addresses, localhost, names without a dot and an empty name always belong to
// Hosts: nobody can register a name without a dot.
type Hosts struct{ names map[string]bool }

// NewHosts returns Hosts with further names.
func NewHosts(names []string) *Hosts {
	h := &Hosts{names: map[string]bool{}}
	for _, n := range names {
		h.names[strings.ToLower(n)] = true
	}
	return h
}

// Has reports whether host, with or without a port, is one of h.
func (h *Hosts) Has(host string) bool {
	if _, err := netip.ParseAddrPort(host); err == nil {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	name := strings.TrimSuffix(strings.ToLower(clientaddr.WithoutPort(host)), ".")
	return h.names[name] || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost")
}
