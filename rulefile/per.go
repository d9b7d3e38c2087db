package rulefile

import (
	"slices"

	"github.com/weirhq/weir/rule"
)

// per reads the attributes of the key: names, or tables of one name with the bits of
// the networks that count together, {ip: {v6: 64}}.
func (p *pass) per(n *node) (names []string, networks map[string]rule.Network) {
	if n == nil {
		return nil, nil
	}
	items := []*node{n}
	if n.kind == aList {
		if items = n.items; len(items) == 0 {
			p.fault(n, "%s is an empty list, want at least one in it", n.label)
		}
	}
	for _, item := range items {
		if item.kind != aTable || p.lacksQuotes(item) {
			if name := p.text(item); name != "" {
				names = append(names, name)
			}
			continue
		}
		for _, e := range p.unique(item) {
			names = append(names, e.key.text)
			if networks == nil {
				networks = map[string]rule.Network{}
			}
			networks[e.key.text] = p.network(e.value)
		}
	}
	return names, networks
}

var networkKeys = []string{"v4", "v6"}

// network reads the bits of networks.
func (p *pass) network(n *node) rule.Network {
	f := p.fields(n, networkKeys)
	if f == nil {
		return rule.Network{V6: 128} // harmless: the fault is noted
	}
	if len(n.entries) == 0 {
		p.fault(n, "names no bits, want v4, v6 or both, such as {v6: 64}")
		return rule.Network{V6: 128}
	}
	return rule.Network{V4: int(p.whole(f["v4"], 1, 32)), V6: int(p.whole(f["v6"], 1, 128))}
}

// defaultAddresses are the attributes that a file without the key addresses reads
// as IP addresses.
var defaultAddresses = []string{"ip"}

// asAddresses reads the names of the attributes that are IP addresses.
func (p *pass) asAddresses(n *node) []string {
	if n == nil {
		return defaultAddresses
	}
	if n.kind == aList && len(n.items) == 0 {
		return nil
	}
	names := p.texts(n)
	slices.Sort(names)
	return slices.Compact(names)
}
