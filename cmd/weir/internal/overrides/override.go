// Package overrides has the limits that customers have instead of those in the rules: who set which, until
// when. A [Book] keeps them in a register that instances share, and gives each engine its own.
package overrides

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Override is the limit of certain keys of a rule, instead of the rule's.
type Override struct {
	Rule string

	// Attributes select the keys: some or all of the attributes in the rule's per, sorted by name.
	Attributes []weir.Attribute

	Limit int64
	Burst int64     // of a bucket; 0: that of the rule
	Until time.Time // zero: without an end
	Note  string

	By  string    // the name of the token that set it; empty without authentication
	Set time.Time // when it was set

	// Idle reports whether the override has no effect, because its rule is gone, or has no such
	// attributes, networks or quota any more. Only List sets it.
	Idle bool
}

const (
	// MaxNote is the maximum size of a note, in bytes.
	MaxNote = 256

	// MaxOverrides and MaxBytes bound the overrides of one namespace and their text, and
	// MaxNamespaces times as many those of all namespaces.
	MaxOverrides  = 100_000
	MaxBytes      = 32 << 20
	MaxNamespaces = 10

	// PageSize is how many overrides List returns at most.
	PageSize = 1000
)

// check returns the faults of o, of which Rule, Attributes, Limit, Burst, Until and Note are set, by the
// rules of set. It makes the attributes canonical.
func (o *Override) check(set *rule.Set, now time.Time) error {
	i, err := o.known(set)
	if err != nil {
		return err
	}
	r := set.Rule(i)
	switch {
	case r.Kind() != rule.KindLimit:
		return fault.Newf("rule", "%s is a %s; only limits can be overridden", o.Rule, r.Kind())
	case r.Measure == window.Distinct:
		return fault.Newf("rule", "%s counts distinct members; only limits on hits and sums can be overridden", o.Rule)
	case len(r.Per) == 0:
		return fault.Newf("rule", "%s has one counter for all requests; change its limit in the rules", o.Rule)
	case len(o.Attributes) == 0:
		return fault.Newf("attributes", "name some or all of %s", strings.Join(r.Per, ", "))
	case o.Limit < 0 || o.Limit > window.MaxHits:
		return fault.Newf("limit", "%d: want 0 to %d", o.Limit, window.MaxHits)
	case o.Burst < 0 || o.Burst > window.MaxHits:
		return fault.Newf("burst", "%d: want 1 to %d", o.Burst, window.MaxHits)
	case o.Burst > 0 && r.Window.Kind != window.KindBucket:
		return fault.Newf("burst", "rule %s has no bucket", o.Rule)
	case !o.Until.IsZero() && !o.Until.After(now):
		return fault.Newf("until", "%s is over", o.Until.Format(time.RFC3339))
	case !o.Until.IsZero() && o.Until.Year() > 9999:
		return fault.Newf("until", "want a year up to 9999")
	case len(o.Note) > MaxNote:
		return fault.Newf("note", "has %d bytes, more than %d", len(o.Note), MaxNote)
	case !utf8.ValidString(o.Note):
		return fault.Newf("note", "text is not valid UTF-8")
	}
	if err := o.canonical(set.Compiled(), i); err != nil {
		return err
	}
	if _, err := plan.OverrideLimit(set.Compiled(), i, o.limit()); err != nil {
		f := fault.Of(err)[0]
		field := "limit"
		if f.Path == "window.burst" && o.Burst > 0 {
			field = "burst"
		}
		return fault.Newf(field, "rule %s: %s", o.Rule, f.Problem)
	}
	if r.Mode != rule.Off && o.idle(set) {
		return fault.Newf("attributes", "rule %s has no key %s; want an address, or a network as the rule groups addresses", o.Rule, o.Key(set))
	}
	return nil
}

// known returns the index of the rule of o in set, or the fault of a name that the rules do not have or of a value
// that is meant as a wildcard.
func (o *Override) known(set *rule.Set) (int, error) {
	i, ok := set.Find(o.Rule)
	if !ok {
		return 0, fault.Newf("rule", "%.64q: not found", o.Rule)
	}
	per := set.Rule(i).Per
	for _, a := range o.Attributes {
		switch {
		case !slices.Contains(per, a.Name) && len(per) > 0:
			return 0, fault.Newf("attributes."+a.Name, "rule %s does not count per it, but per %s", o.Rule, strings.Join(per, ", "))
		case strings.TrimSpace(a.Value) == "*":
			return 0, fault.Newf("attributes."+a.Name, "\"*\" is not a wildcard; leave the attribute out, or change the limit in the rules")
		}
	}
	return i, nil
}

// canonical makes the values of the attributes those that the keys of rule i have: addresses without
// the bits that do not count, and without white space where the rule trims it.
func (o *Override) canonical(rules *ruleset.Compiled, i int) error {
	values := make([]string, rules.Width())
	for _, a := range o.Attributes {
		if at, ok := rules.Attribute(a.Name); ok {
			values[at] = a.Value
		}
	}
	rules.Complete(values)
	for k := range o.Attributes {
		a := &o.Attributes[k]
		part, ok := rules.AppendPart(nil, i, rules.Per(i, a.Name), values)
		if !ok {
			return fault.Newf("attributes."+a.Name, "is empty")
		}
		a.Value, _, _ = store.CutKey(string(part))
	}
	slices.SortFunc(o.Attributes, func(a, b weir.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// Key returns the attributes of o as text: as decisions show its key under the rules of set, if it is of one key. set
// is nil if there are no rules.
func (o *Override) Key(set *rule.Set) string {
	all := o.Attributes
	alone := len(all) == 1
	if set != nil {
		if i, ok := set.Find(o.Rule); ok {
			per := set.Rule(i).Per
			alone = alone && len(per) == 1
			all = slices.SortedFunc(slices.Values(all), func(a, b weir.Attribute) int {
				return slices.Index(per, a.Name) - slices.Index(per, b.Name)
			})
		}
	}
	if alone {
		return all[0].Value
	}
	var parts []string
	for _, a := range all {
		parts = append(parts, a.Name+"="+a.Value)
	}
	return strings.Join(parts, " ")
}

func (o *Override) limit() override.Limit { return override.Limit{Quota: o.Limit, Burst: o.Burst} }

// idle reports whether o has no effect under the rules of set.
func (o *Override) idle(set *rule.Set) bool {
	i, ok := set.Find(o.Rule)
	if !ok || !plan.CanOverride(set.Rule(i)) || set.Rule(i).Mode == rule.Off {
		return true
	}
	for _, a := range o.Attributes {
		if !slices.Contains(set.Rule(i).Per, a.Name) {
			return true
		}
	}
	now := Override{Attributes: slices.Clone(o.Attributes)}
	for k := range now.Attributes {
		a := &now.Attributes[k]
		_, grouped := set.Rule(i).Networks[a.Name]
		if network, err := netip.ParsePrefix(a.Value); err == nil && (grouped || slices.Contains(set.Compiled().Addresses(), a.Name)) {
			a.Value = network.Addr().String()
		}
	}
	if now.canonical(set.Compiled(), i) != nil || !slices.Equal(now.Attributes, o.Attributes) {
		return true // the rule makes other networks of addresses than it did
	}
	_, err := plan.OverrideLimit(set.Compiled(), i, o.limit())
	return err != nil
}

// networks returns the fields of o with each network, the smallest first, in the place of an address. There are none if
// the field of o is longer than that of an override can be.
func (o *Override) networks(namespace string) (fields []string) {
	if len(o.field(namespace)) > kept.MaxField {
		return nil
	}
	for k := range o.Attributes {
		value := o.Attributes[k].Value
		a, _ := netip.ParseAddr(value)
		a = a.Unmap()
		for bits := a.BitLen(); bits > 0; bits-- {
			network, _ := a.Prefix(bits)
			o.Attributes[k].Value = network.String()
			fields = append(fields, o.field(namespace))
		}
		o.Attributes[k].Value = value
	}
	return fields
}

// field returns the name of o in the register: its namespace, its rule, the names of its attributes and
// then their values, each after its length, so that no two have the same and the key of an
// [override.Change] is its end.
func (o *Override) field(namespace string) string {
	parts := make([]string, 0, 3+2*len(o.Attributes))
	parts = append(parts, namespace, o.Rule, string(rune(len(o.Attributes))))
	for _, a := range o.Attributes {
		parts = append(parts, a.Name)
	}
	for _, a := range o.Attributes {
		parts = append(parts, a.Value)
	}
	return string(ruleset.AppendKey(nil, parts...))
}

// place is what a field says.
type place struct {
	namespace, rule string
	names           []string
	key             string // the values, as ruleset.AppendKey joins them
}

// parse reads a field. It reports false for one that another version has written.
func parse(field string) (p place, ok bool) {
	var count string
	ok1, ok2, ok3 := false, false, false
	p.namespace, field, ok1 = store.CutKey(field)
	p.rule, field, ok2 = store.CutKey(field)
	count, field, ok3 = store.CutKey(field)
	n, _ := utf8.DecodeRuneInString(count)
	if !ok1 || !ok2 || !ok3 || n < 1 || n > sizes.Attributes {
		return p, false
	}
	p.names = make([]string, n)
	for i := range p.names {
		if p.names[i], field, ok = store.CutKey(field); !ok {
			return p, false
		}
	}
	p.key = field
	return p, true
}

// values returns the values in a key.
func values(key string) (all []string) {
	for key != "" {
		v, rest, ok := store.CutKey(key)
		if !ok {
			return nil
		}
		all, key = append(all, v), rest
	}
	return all
}

// version begins the value of an override.
const version = 1

// value returns what the register has of o beside its field.
func (o *Override) value() string {
	b := []byte{version}
	until := int64(0)
	if !o.Until.IsZero() {
		until = o.Until.UnixMicro()
	}
	for _, n := range [...]int64{o.Limit, o.Burst, until, o.Set.UnixMicro()} {
		b = binary.AppendVarint(b, n)
	}
	return string(ruleset.AppendKey(b, o.By, o.Note))
}

// read reads an override. It reports false for one that another version has written.
func read(field, value string) (o Override, ok bool) {
	p, ok := parse(field)
	if !ok || len(value) == 0 || value[0] != version {
		return o, false
	}
	o.Rule = p.rule
	all := values(p.key)
	if len(all) != len(p.names) {
		return o, false
	}
	for i, name := range p.names {
		o.Attributes = append(o.Attributes, weir.Attribute{Name: name, Value: all[i]})
	}
	limit, until, at, rest, ok := numbers(value)
	if !ok {
		return o, false
	}
	o.Limit, o.Burst, o.Set = limit.Quota, limit.Burst, time.UnixMicro(at).UTC()
	if until != 0 {
		o.Until = time.UnixMicro(until).UTC()
	}
	var ok1, ok2 bool
	o.By, rest, ok1 = store.CutKey(rest)
	o.Note, _, ok2 = store.CutKey(rest)
	return o, ok1 && ok2
}

// numbers reads the numbers of a value, and what follows them.
func numbers(value string) (limit override.Limit, until, at int64, rest string, ok bool) {
	if len(value) == 0 || value[0] != version {
		return limit, 0, 0, "", false
	}
	var b [4 * binary.MaxVarintLen64]byte
	used, left := 0, b[:copy(b[:], value[1:])]
	for _, to := range [...]*int64{&limit.Quota, &limit.Burst, &until, &at} {
		n, size := binary.Varint(left)
		if size <= 0 {
			return limit, 0, 0, "", false
		}
		*to, left, used = n, left[size:], used+size
	}
	return limit, until, at, value[1+used:], true
}

// AppendJSON appends o as a JSON object.
func (o *Override) AppendJSON(b []byte) []byte {
	b = jsontext.AppendText(append(b, `{"rule":`...), o.Rule)
	b = append(b, `,"attributes":{`...)
	for i, a := range o.Attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendText(append(jsontext.AppendText(b, a.Name), ':'), a.Value)
	}
	b = strconv.AppendInt(append(b, `},"limit":`...), o.Limit, 10)
	if o.Burst > 0 {
		b = strconv.AppendInt(append(b, `,"burst":`...), o.Burst, 10)
	}
	if !o.Until.IsZero() {
		b = append(o.Until.AppendFormat(append(b, `,"until":"`...), time.RFC3339Nano), '"')
	}
	if o.Note != "" {
		b = jsontext.AppendText(append(b, `,"note":`...), o.Note)
	}
	if o.By != "" {
		b = jsontext.AppendText(append(b, `,"by":`...), o.By)
	}
	b = append(o.Set.AppendFormat(append(b, `,"set":"`...), time.RFC3339Nano), '"')
	if o.Idle {
		b = append(b, `,"idle":true`...)
	}
	return append(b, '}')
}
