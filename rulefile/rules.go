package rulefile

import (
	"slices"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

var ruleKeys = []string{
	"name", "when", "trim", "per", "together", "limit", "window", "after", "distinct", "sum", "trigger", "once", "near",
	"hold", "unsettled", "max_holds", "ban", "then", "code", "rest", "feedback", "mode", "on_outage", "count_denied", "max_keys", "export", "lease", "timezone",
	"ignore",
}

var (
	modes   = []string{rule.Enforce.String(), rule.Shadow.String(), rule.Off.String()}
	ends    = []string{"keep", "release"}
	rests   = []string{"skip", "count"}
	outages = []string{rule.OutageLocal.String(), rule.OutageAllow.String(), rule.OutageDeny.String()}
)

// readRule reads one entry of the list rules.
func (p *pass) readRule(n *node) rule.Rule {
	if name := n.get("name"); name != nil {
		p.rule = name.text
	}
	defer func() { p.rule = "" }()

	f := p.fields(n, ruleKeys)
	if f == nil {
		return rule.Rule{}
	}
	zone := p.zone
	if z := f["timezone"]; z != nil {
		zone = p.timezone(z)
	}
	r := rule.Rule{
		Name:        p.text(f["name"]),
		When:        p.when(f["when"]),
		Together:    p.attribute(f["together"], "user"),
		Quota:       p.quota(f["limit"]),
		Trigger:     p.whole(f["trigger"], 1, window.MaxHits),
		Once:        p.yes(f["once"]),
		Near:        p.percent(f["near"]),
		Window:      p.window(f["window"], zone),
		After:       p.after(f["after"], zone),
		Hold:        p.duration(f["hold"], nil),
		Release:     p.choice(f["unsettled"], ends) == 1,
		MaxHolds:    int(p.whole(f["max_holds"], 1, window.MaxEntries)),
		Ban:         p.ban(f["ban"]),
		Then:        p.outcome(f["then"]),
		Code:        p.whole(f["code"], 1, window.MaxHits),
		CountRest:   p.choice(f["rest"], rests) == 1,
		Feedback:    p.feedback(f["feedback"]),
		Mode:        rule.Mode(p.choice(f["mode"], modes)),
		OnOutage:    rule.Outage(p.choice(f["on_outage"], outages)),
		CountDenied: p.yes(f["count_denied"]),
		MaxKeys:     p.whole(f["max_keys"], 1, window.MaxHits),
		Export:      p.yes(f["export"]),
		Lease:       p.lease(f["lease"]),
	}
	r.Per, r.Networks = p.per(f["per"])
	p.ignore(f["ignore"])
	if trim := f["trim"]; p.yes(trim) {
		if len(r.When) == 0 {
			p.fault(trim, "trim is for the attributes under when, and there are none")
		}
		for i := range r.When {
			r.When[i].Trim = true
		}
	}
	sum, distinct := f["sum"], f["distinct"]
	switch {
	case sum != nil && distinct != nil:
		p.fault(distinct, "distinct and sum exclude each other: want one of them")
	case sum != nil:
		r.Measure, r.Of = window.Sum, p.attribute(sum, "tokens")
	case distinct != nil:
		r.Measure, r.Of = window.Distinct, p.attribute(distinct, "peer")
	}
	if f["trigger"] != nil { // even if its number is wrong
		r.Trigger = max(r.Trigger, 1)
	}
	return r
}

// allHits is the word for [window.All].
const allHits = "all"

// feedback reads how many hits a refund gives back, by its name.
func (p *pass) feedback(n *node) map[string]int64 {
	if n == nil {
		return nil
	}
	if is := n.String(); n.kind != aTable || len(n.entries) == 0 {
		if n.kind == aTable {
			is = "an empty table"
		}
		p.fault(n, "feedback is %s, want names with the hits that are given back, such as {solved: 2} or {logged-in: all}", is)
		return nil
	}
	hits := map[string]int64{}
	for _, e := range p.unique(n) {
		if e.value.kind == aText && e.value.text == allHits {
			hits[e.key.text] = window.All
			continue
		}
		hits[e.key.text] = p.whole(e.value, 1, window.MaxHits)
	}
	return hits
}

// lease reads how parts of a quota are leased: a word, or a credit.
func (p *pass) lease(n *node) int64 {
	switch {
	case n == nil || n.isScalar() && n.text == "off":
		return 0
	case n.isScalar() && n.text == "strict":
		return window.LeaseStrict
	case n.kind == aTable && len(n.entries) > 0:
		return p.whole(p.fields(n, []string{"credit"})["credit"], 1, window.MaxHits)
	}
	p.fault(n, "lease is %s, want off, strict, or {credit: 100}", n)
	return 0
}

var afterKeys = []string{"count", "window"}

// after reads the condition under which a limit starts to count.
func (p *pass) after(n *node, zone *time.Location) window.After {
	if n == nil {
		return window.After{}
	}
	before := len(p.faults)
	f := p.fields(n, afterKeys)
	complete := before == len(p.faults) // otherwise a misspelt key may be the missing one
	for _, key := range afterKeys {
		if complete && f[key] == nil {
			p.fault(n, "after has no %s: want {count: 30, window: day}", key)
		}
	}
	return window.After{
		Count:  p.whole(f["count"], 1, window.MaxHits),
		Window: p.window(f["window"], zone),
	}
}

var quotaKeys = []string{"of", "most", "else"}

// quota reads a number, numbers by the value of an attribute, or the attribute whose value
// is the number.
func (p *pass) quota(n *node) *rule.Quota {
	if n == nil {
		return nil
	}
	if n.kind != aTable {
		return &rule.Quota{Value: p.whole(n, 0, window.MaxHits)}
	}
	if n.get("by") == nil && n.get("of") != nil {
		return p.quotaOf(n)
	}
	q := &rule.Quota{Cases: map[string]int64{}}
	for _, e := range p.unique(n) {
		switch key := e.key.text; key {
		case "by":
			q.By = p.text(e.value)
		case "else":
			v := p.whole(e.value, 0, window.MaxHits)
			q.Else = &v
		default:
			q.Cases[key] = p.whole(e.value, 0, window.MaxHits)
		}
	}
	if n.get("by") == nil {
		p.fault(n, "limit has no by: want a number, or {by: plan, free: 10, pro: 1000, else: 5}")
	}
	return q
}

// quotaOf reads the table of a quota that is the value of an attribute.
func (p *pass) quotaOf(n *node) *rule.Quota {
	before := len(p.faults)
	f := p.fields(n, quotaKeys)
	complete := before == len(p.faults) // otherwise a misspelt key may be the missing one
	q := &rule.Quota{Of: p.text(f["of"]), Most: p.whole(f["most"], 1, window.MaxHits)}
	if complete && f["most"] == nil {
		p.fault(n, "limit has no most, the highest quota: want {of: customer_limit, most: 100_000, else: 100}")
	}
	if f["else"] != nil {
		other := p.whole(f["else"], 0, window.MaxHits)
		q.Else = &other
	}
	return q
}

// ipNetwork is the network by which the attribute ip is counted unless a file sets another
// one: a client with IPv6 usually has that many addresses.
var ipNetwork = rule.Network{V6: 64}

// per reads the attributes of the key: names, or tables of one name with the bits of
// the networks that count together, {peer: {v6: 64}}.
func (p *pass) per(n *node) (names []string, networks map[string]rule.Network) {
	if n == nil {
		return nil, nil
	}
	items := scalars(n)
	if len(items) == 0 {
		p.fault(n, "%s is an empty list, want at least one in it", n.label)
	}
	for _, item := range items {
		if item.kind != aTable || p.lacksQuotes(item) {
			name := p.text(item)
			if name != "" {
				names = append(names, name)
			}
			if _, isAddress := slices.BinarySearch(p.ips, name); name == "ip" && isAddress {
				networks = with(networks, name, ipNetwork)
			}
			continue
		}
		if len(item.entries) == 0 {
			p.fault(item, "names no attribute, want one with bits, such as {ip: {v6: 64}}")
		}
		for _, e := range p.unique(item) {
			name, bits := e.key.text, p.network(e.value)
			names = append(names, name)
			if name != "ip" || bits != (rule.Network{V6: 128}) { // which is the address itself
				networks = with(networks, name, bits)
			}
		}
	}
	return names, networks
}

// with returns networks with n added under name.
func with(networks map[string]rule.Network, name string, n rule.Network) map[string]rule.Network {
	if networks == nil {
		networks = map[string]rule.Network{}
	}
	networks[name] = n
	return networks
}

var networkKeys = []string{"v4", "v6"}

// network reads the bits of networks.
func (p *pass) network(n *node) rule.Network {
	f := p.fields(n, networkKeys)
	if f == nil {
		return rule.Network{V6: 128} // harmless: the fault is recorded
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

var banKeys = []string{"for", "factor", "most", "forget"}

// ban reads how long keys are banned: a length of time, or a table.
func (p *pass) ban(n *node) (b window.Ban) {
	switch {
	case n == nil:
		return b
	case n.kind != aTable:
		b.For = p.duration(n, nil)
		return b
	}
	f := p.fields(n, banKeys)
	if f["for"] == nil {
		p.fault(n, "ban has no for: want {for: 15m, factor: 2, most: 1d, forget: 7d}, or a length of time such as 15m")
		return b
	}
	return window.Ban{
		For: p.duration(f["for"], nil), Factor: p.whole(f["factor"], 1, 1000),
		Most: p.duration(f["most"], nil), Forget: p.duration(f["forget"], nil),
	}
}
