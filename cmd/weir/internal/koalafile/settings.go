package koalafile

import (
	"slices"
	"strconv"
	"strings"
)

// setting is a named number, such as time=5.
type setting struct {
	value int64
	at    piece
}

// wraps reports whether the number does not fit into 32 bits, in which koala
// keeps it.
func (n setting) wraps() bool { return int64(int32(n.value)) != n.value }

// settings reads `name=number; …`.
func (p *pass) settings(s piece, known ...string) map[string]setting {
	found := map[string]setting{}
	for _, part := range s.split(";") {
		name, number, ok := part.cut("=")
		name, number = name.trim(), number.trim()
		if !ok || !slices.Contains(known, name.text) {
			p.fault(part, "%q is unknown here: want %s=NUMBER", part.text, strings.Join(known, "=NUMBER, "))
			continue
		}
		if _, twice := found[name.text]; twice {
			p.fault(part, "%s appears twice: want one", name.text)
		}
		value, err := strconv.ParseInt(number.text, 10, 64)
		if err != nil {
			p.fault(part, "%s is %q, want a whole number", name.text, number.text)
			value = 1 // harmless
		}
		found[name.text] = setting{value, part}
	}
	return found
}
