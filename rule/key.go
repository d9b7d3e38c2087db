package rule

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/window"
)

// AppendKey appends parts to dst, each after its length, so that different
// parts never give the same bytes. This file is the only place where keys are
// built.
func AppendKey(dst []byte, parts ...string) []byte {
	for _, p := range parts {
		dst = appendPart(dst, p)
	}
	return dst
}

func appendPart(dst []byte, p string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p)))
	return append(dst, p...)
}

// AppendKey appends the key of a request under rule i to dst: the values of
// the rule's `per`, so that two requests have one key when these are equal.
func (s *Set) AppendKey(dst []byte, i int, values []string) []byte {
	for _, p := range s.rules[i].per {
		dst = appendPart(dst, p.value(values))
	}
	return dst
}

// Key is the key of a request under rule i for people to read: the value of
// the one attribute in `per`, name=value pairs for several, empty for none.
// Different keys can read the same.
func (s *Set) Key(i int, values []string) string {
	c := &s.rules[i]
	if len(c.per) == 1 {
		return c.per[0].value(values)
	}
	size := 0
	for n, p := range c.per {
		size += len(" =") + len(c.Per[n]) + len(p.value(values))
	}
	var b strings.Builder
	b.Grow(size)
	for n, p := range c.per {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.Per[n])
		b.WriteByte('=')
		b.WriteString(p.value(values))
	}
	return b.String()
}

// Together is what keeps the key of a request under rule i together with
// others, empty for nothing.
func (s *Set) Together(i int, values []string) string { return s.rules[i].together.value(values) }

// Sum is what a request weighs under rule i, which sums an attribute: a whole
// number from 0 to [window.MaxHits]. The error names the attribute and its
// value when that is anything else.
func (s *Set) Sum(i int, values []string) (int64, error) {
	c := &s.rules[i]
	v := c.of.value(values)
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n > uint64(window.MaxHits) {
		return 0, fmt.Errorf("attribute %q is %s, want a whole number from 0 to %d (money: in cents)",
			c.Of, quoted(v), window.MaxHits)
	}
	return int64(n), nil
}

// Member is what a request adds under rule i, which counts distinct values.
func (s *Set) Member(i int, values []string) string { return s.rules[i].of.value(values) }

// ID is the identity of rule i's counters: its name, `per`, measure and the
// kinds and lengths of its windows. Whatever else of a rule changes, its
// counters can stay. It is bytes, not text for people.
func (s *Set) ID(i int) string { return s.rules[i].id }

func identity(r *Rule) string {
	if r.Kind() == KindVerdict {
		return string(AppendKey(nil, r.Name))
	}
	after := ""
	if r.After != (window.After{}) {
		after = r.After.Window.ID()
	}
	id := AppendKey(nil, r.Name, r.Measure.String(), r.Of, r.window().ID(), after)
	return string(AppendKey(id, r.Per...))
}

// quoted is v in quotes for a message, cut when it is long.
func quoted(v string) string {
	const most = 64
	if len(v) > most {
		return strconv.Quote(v[:most]) + "…"
	}
	return strconv.Quote(v)
}
