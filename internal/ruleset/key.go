package ruleset

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/window"
)

// AppendKey appends parts to dst, each after its length, so that two different
// lists of parts never give the same bytes. This file is the only place that
// builds keys.
func AppendKey(dst []byte, parts ...string) []byte {
	for _, p := range parts {
		dst = appendPart(dst, p)
	}
	return dst
}

// appendPart appends the length of p, and p.
func appendPart(dst []byte, p string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

// AppendKey appends the key of a request under rule i to dst: the values of the
// rule's `per` attributes. Two requests have the same key exactly when these
// values are equal.
func (s *Compiled) AppendKey(dst []byte, i int, values []string) []byte {
	per := s.rules[i].per
	for n := range per {
		dst = appendPart(dst, per[n].value(values))
	}
	return dst
}

// AppendPart appends the value of the n-th attribute in `per` of rule i to dst, as
// [Compiled.AppendKey] does. It reports whether there is a value.
func (s *Compiled) AppendPart(dst []byte, i, n int, values []string) ([]byte, bool) {
	v := s.rules[i].per[n].value(values)
	return appendPart(dst, v), v != ""
}

// Per returns the position of an attribute in `per` of rule i, or -1.
func (s *Compiled) Per(i int, attribute string) int {
	return slices.IndexFunc(s.rules[i].Per, func(p Part) bool { return p.Attribute == attribute })
}

// SameKey reports whether every request has the same key under rules i and j.
func (s *Compiled) SameKey(i, j int) bool { return slices.Equal(s.rules[i].per, s.rules[j].per) }

// ReadableKey returns the key of a request under rule i in readable form: the value of
// the only attribute in `per`, or name=value pairs for several, or "" for none.
// Different keys can have the same readable form.
func (s *Compiled) ReadableKey(i int, values []string) string {
	c := &s.rules[i]
	if len(c.per) == 1 {
		return c.per[0].value(values)
	}
	size := 0
	for n, p := range c.per {
		size += len(" =") + len(c.Per[n].Attribute) + len(p.value(values))
	}
	var b strings.Builder
	b.Grow(size)
	for n, p := range c.per {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.Per[n].Attribute)
		b.WriteByte('=')
		b.WriteString(p.value(values))
	}
	return b.String()
}

// ReadableKeyLen returns the length of [Compiled.ReadableKey], in bytes, or one more.
func (s *Compiled) ReadableKeyLen(i int, values []string) (n int) {
	c := &s.rules[i]
	if len(c.per) == 1 {
		return len(c.per[0].value(values))
	}
	for k, p := range c.per {
		n += len(" =") + len(c.Per[k].Attribute) + len(p.value(values))
	}
	return n
}

// Together returns the value of the attribute Together of rule i, or "" if
// the rule has none. A store of several nodes keeps keys with the same value on
// one node.
func (s *Compiled) Together(i int, values []string) string { return s.rules[i].together.value(values) }

// Sum returns the amount that a request adds under rule i, which must be a rule
// that sums an attribute. The amount is a whole number from 0 to
// [window.MaxHits]; any other value of the attribute is an error that names both.
func (s *Compiled) Sum(i int, values []string) (int64, error) {
	c := &s.rules[i]
	v := c.of.value(values)
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n > uint64(window.MaxHits) {
		return 0, fmt.Errorf("attribute %q is %s, want a whole number from 0 to %d (money: in cents)",
			c.Of, Quoted(v), window.MaxHits)
	}
	return int64(n), nil
}

// Member returns the member that a request adds under rule i, which must be a rule
// that counts distinct values.
func (s *Compiled) Member(i int, values []string) string { return s.rules[i].of.value(values) }

// ID returns the identity of the counters of rule i. It consists of the rule's
// Name, Per, Networks, Measure and Of, and of the [window.Window.ID] of its window and of
// the window of its condition. A rule keeps its counters when anything else
// changes. The ID is bytes, not readable text.
func (s *Compiled) ID(i int) string { return s.rules[i].ID }

// Quoted returns v in quotes for a message, cut when it is long.
func Quoted(v string) string {
	const most = 64
	if len(v) > most {
		return strconv.Quote(v[:most]) + "…"
	}
	return strconv.Quote(v)
}

// Values is the inverse of [Compiled.AppendKey]: it returns the values of the attributes in
// `per` of rule i, and a vector of values that has these and no others. ok is false for bytes
// that are no key of the rule.
func (s *Compiled) Values(i int, key []byte) (of, values []string, ok bool) {
	per := s.rules[i].per
	of, values = make([]string, len(per)), make([]string, s.Width())
	for n := range per {
		size, length := binary.Uvarint(key)
		if length <= 0 || size > uint64(len(key)-length) {
			return nil, nil, false
		}
		end := length + int(size)
		key, of[n] = key[end:], string(key[length:end])
		values[per[n].at] = of[n]
	}
	return of, values, len(key) == 0
}
