package envoyfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// Unit is the unit of a limit: the length of its windows, which follow each other
// from 1 January 1970 on.
type Unit uint8

// Units. None is that of an unlimited descriptor.
const (
	None Unit = iota
	Second
	Minute
	Hour
	Day
	Week
	Month // 30 days
	Year  // 365 days
)

var unitNames = [...]string{"none", "second", "minute", "hour", "day", "week", "month", "year"}

// String returns the unit as files write it.
func (u Unit) String() string { return unitNames[u] }

const day = 24 * time.Hour

var unitLengths = [...]time.Duration{0, time.Second, time.Minute, time.Hour, day, 7 * day, 30 * day, 365 * day}

// Length returns the length of u.
func (u Unit) Length() time.Duration { return unitLengths[u] }

// descriptor is a descriptor of a file.
type descriptor struct {
	Limit      // without a rate_limit it only has the path of those below
	limited    bool
	key, value string
	line       int
	children   []*descriptor
	below      *level // the children; nil: none

	valueMetric, share bool
}

// id returns the identity of d within its level.
func (d *descriptor) id() [2]string { return [2]string{d.key, d.value} }

// file is one file without faults.
type file struct {
	name        string
	domain      string
	place       fault.Place // of the domain
	descriptors []*descriptor
	warnings    fault.List
}

// pass is one run over a file. Its methods record faults and continue.
type pass struct {
	name     string
	lines    []string
	faults   fault.List
	warnings fault.List
}

func (p *pass) place(line, column int) fault.Place {
	at := fault.Place{File: p.name, Line: line, Column: column}
	if line >= 1 && line <= len(p.lines) {
		at.Source = strings.ToValidUTF8(p.lines[line-1], "\uFFFD")
	}
	return at
}

// mostFaults is the maximum number of faults of a file that are reported.
const mostFaults = 100

func (p *pass) at(line, column int, format string, args ...any) {
	if len(p.faults) < mostFaults {
		p.faults = append(p.faults, &fault.Fault{Place: p.place(line, column), Problem: fmt.Sprintf(format, args...)})
	}
}

func (p *pass) fault(n *node, format string, args ...any) { p.at(n.line, n.column, format, args...) }

func (p *pass) warn(n *node, format string, args ...any) {
	p.warnings = append(p.warnings, &fault.Fault{Place: p.place(n.line, n.column), Problem: fmt.Sprintf(format, args...)})
}

// parse reads src as the text of a file. The error is a [fault.List].
func parse(name string, src []byte) (*file, error) {
	p := &pass{name: name}
	f := &file{name: name}
	root := p.source(src)
	switch {
	case len(p.faults) > 0:
	case root == nil || root.kind == nothing:
		p.at(1, 1, "the file is empty: want domain: NAME")
	case root.kind != aTable:
		what := "a text" // which can be another file: a key, or a log
		if root.kind == aList {
			what = "a list"
		}
		p.fault(root, "the file is %s: want a table with domain and descriptors", what)
	default:
		p.known(root, 0)
		p.file(f, root)
	}
	if len(p.faults) > 0 {
		p.faults.Sort(name)
		return nil, p.faults.Err()
	}
	f.warnings = p.warnings
	return f, nil
}

// keys are the keys of all tables. The reference service accepts each of them in
// every table, and ignores those that do not belong there.
var keys = []string{
	"domain", "key", "value", "descriptors", "rate_limit", "unit", "unit_multiplier", "requests_per_unit", "unlimited", "shadow_mode", "quota_mode",
	"name", "replaces", "detailed_metric", "value_to_metric", "share_threshold", "metadata",
}

// known checks the keys of n and of all below it, and that it has no fractions.
func (p *pass) known(n *node, depth int) {
	if depth > maxDepth {
		p.fault(n, "descriptors are nested too deep: want at most %d", maxDepth)
		return
	}
	switch n.kind {
	case aFraction:
		p.fault(n, "%s: a number with a fraction; write it in quotes if it is a text", n.text)
	case aList:
		for _, item := range n.items {
			if item.kind != aTable {
				p.fault(item, "%s in a list: want a table, such as {key: NAME}", item)
				continue
			}
			p.known(item, depth+1)
		}
	case aTable:
		for _, e := range n.entries {
			switch {
			case e.key.kind != aText:
				p.fault(e.key, "the key %s is not text", e.key)
			case !slices.Contains(keys, e.key.text):
				p.fault(e.key, "unknown key %q%s", e.key.text, fault.DidYouMean(e.key.text, keys))
			case e.key.text != "metadata":
				p.known(e.value, depth+1)
			}
		}
	}
}

// only warns of keys that have no effect in a table.
func (p *pass) only(n *node, of string, allowed ...string) {
	for _, e := range n.entries {
		if e.key.kind == aText && slices.Contains(keys, e.key.text) && !slices.Contains(allowed, e.key.text) {
			p.warn(e.key, "%s has no effect in %s", e.key.text, of)
		}
	}
}

func (p *pass) file(f *file, root *node) {
	p.only(root, "a file", "domain", "descriptors")
	f.domain = p.text(root, "domain")
	f.place = p.place(root.line, 1)
	if d := root.get("domain"); d != nil {
		f.place = p.place(d.line, 1)
	}
	if f.domain == "" && len(p.faults) == 0 {
		p.fault(root, "domain is missing: each file is for one")
	}
	f.descriptors = p.descriptors(root)
}

// descriptors reads the list of descriptors in n.
func (p *pass) descriptors(n *node) (all []*descriptor) {
	list := p.get(n, "descriptors", aList, "a list")
	if list == nil {
		return nil
	}
	first := map[string]int{}
	for _, item := range list.items {
		if item.kind != aTable {
			continue // known has reported it
		}
		d := p.descriptor(item)
		if d.key != "" {
			if line, ok := first[d.joined()]; ok {
				p.fault(item, "%s is the key of a descriptor already, in line %d: a key and its value are joined by _", strconv.Quote(d.joined()), line)
			} else {
				first[d.joined()] = d.line
			}
		}
		all = append(all, d)
	}
	return all
}

// joined returns the key and the value of d as the reference service joins them.
func (d *descriptor) joined() string {
	if d.value == "" {
		return d.key
	}
	return d.key + "_" + d.value
}

func (p *pass) descriptor(n *node) *descriptor {
	p.only(n, "a descriptor", "key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric",
		"value_to_metric", "share_threshold", "metadata")
	before := len(p.faults)
	d := &descriptor{
		line: n.line, key: p.text(n, "key"), value: p.text(n, "value"),
		valueMetric: p.truth(n, "value_to_metric"), share: p.truth(n, "share_threshold"),
		Limit: Limit{Shadow: p.truth(n, "shadow_mode"), Quota: p.truth(n, "quota_mode"), Detailed: p.truth(n, "detailed_metric")},
	}
	if d.key == "" && len(p.faults) == before {
		p.fault(n, "the descriptor has no key")
	}
	if d.share && !strings.Contains(d.joined(), "*") {
		p.warn(n.get("share_threshold"), "share_threshold has no effect without * in value")
		d.share = false
	}
	if m := p.get(n, "metadata", aTable, "a table"); m != nil {
		d.Metadata, _ = m.value().(map[string]any)
	}
	if l := p.get(n, "rate_limit", aTable, "a table, such as {unit: hour, requests_per_unit: 10}"); l != nil {
		d.limited = true
		p.limit(&d.Limit, l)
	}
	d.children = p.descriptors(n)
	return d
}

// limit reads a rate_limit into l.
func (p *pass) limit(l *Limit, n *node) {
	p.only(n, "rate_limit", "unit", "unit_multiplier", "requests_per_unit", "unlimited", "name", "replaces")
	l.Name, l.Unlimited = p.text(n, "name"), p.truth(n, "unlimited")
	unit := p.text(n, "unit")
	switch at := slices.Index(unitNames[1:], strings.ToLower(unit)); {
	case l.Unlimited && unit != "":
		p.fault(n.get("unit"), "unit goes not with unlimited: leave one of them out")
	case l.Unlimited:
	case unit == "":
		p.fault(n, "rate_limit has no unit: want %s", strings.Join(unitNames[1:], ", "))
	case at < 0:
		p.fault(n.get("unit"), "unit %q: want %s", unit, strings.Join(unitNames[1:], ", "))
	default:
		l.Unit = Unit(at + 1)
	}
	l.Requests = p.whole(n, "requests_per_unit", 0, 0, math.MaxUint32)
	most := uint32(math.MaxUint32)
	if l.Unit != None {
		most = uint32(min(window.MaxLength/l.Unit.Length(), math.MaxUint32))
	}
	l.Times = p.whole(n, "unit_multiplier", 1, 1, most)
	l.Replaces = p.replaces(n, l.Name)
}

// replaces reads the names of the limits that a limit called own replaces.
func (p *pass) replaces(n *node, own string) (names []string) {
	list := p.get(n, "replaces", aList, "a list, such as [{name: other}]")
	if list == nil {
		return nil
	}
	for _, item := range list.items {
		if item.kind != aTable {
			continue
		}
		switch name := p.text(item, "name"); name {
		case "":
			p.fault(item, "replaces has an entry without a name")
		case own:
			p.fault(item, "replaces names its own limit, %s", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// get returns the value of a key, which must be of a kind, or nil if there is none.
func (p *pass) get(n *node, key string, of kind, want string) *node {
	v := n.get(key)
	switch {
	case v == nil || v.kind == nothing:
		return nil
	case v.kind != of:
		p.fault(v, "%s is %s: want %s", key, v, want)
		return nil
	}
	return v
}

// text returns the text of a key, or "" if there is none. Numbers and booleans are also
// texts.
func (p *pass) text(n *node, key string) string {
	v := n.get(key)
	switch {
	case v == nil || v.kind == nothing || v.kind == aFraction:
		return ""
	case v.kind == aList || v.kind == aTable:
		p.fault(v, "%s is %s: want text", key, v)
		return ""
	}
	return v.text
}

// whole returns the value of a key that is a whole number from least to most, or other if there is none.
func (p *pass) whole(n *node, key string, other, least, most uint32) uint32 {
	v := n.get(key)
	if v == nil || v.kind == nothing {
		return other
	}
	number, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimPrefix(v.text, "+"), "_", ""), 0, 64)
	if v.kind != aNumber || err != nil || number < uint64(least) || number > uint64(most) {
		p.fault(v, "%s is %s: want a whole number from %d to %d", key, v, least, most)
		return other
	}
	return uint32(number)
}

// truth returns the value of a key that is true or false.
func (p *pass) truth(n *node, key string) bool {
	v := p.get(n, key, aBoolean, "true or false")
	return v != nil && v.truth()
}

// value returns n as a JSON value: maps, lists, text, numbers and booleans.
func (n *node) value() any {
	switch n.kind {
	case aText:
		return n.text
	case aBoolean:
		return n.truth()
	case aNumber, aFraction:
		if v, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 0, 64); err == nil {
			return float64(v)
		}
		if v, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v
		}
		return n.text
	case aList:
		all := make([]any, 0, len(n.items))
		for _, item := range n.items {
			all = append(all, item.value())
		}
		return all
	case aTable:
		all := map[string]any{}
		for _, e := range n.entries {
			all[e.key.text] = e.value.value()
		}
		return all
	}
	return nil
}
