package script

import "github.com/weirhq/weir/window"

// Programs returns the text of every program by its name.
func Programs() map[string]string {
	all := map[string]string{"peek": Peek().Text}
	var made programs
	for _, v := range variants() {
		all[name(v)] = made.of(v).Text
	}
	return all
}

// name returns the name of a program.
func name(v variant) string {
	name := "mixed"
	if k := v.kind(); k != nil {
		name = k.lua
	}
	switch v.base() {
	case full:
		name = "full"
	case fast:
		name = "fast"
	}
	if v.refunds() {
		name += "_refund"
	}
	if v.batches() {
		name += "_batch"
	}
	return name
}

// Mixed returns the program for calls of all kinds, without the fast path.
func (c *Codec) Mixed() *Program { return c.programs.of(general) }

// IsFast reports whether p is the program with the fast path.
func (c *Codec) IsFast(p *Program) bool { return p == c.programs.of(fast) }

// Retries returns what answers have asked c for: the full program, and the instants around
// which it carries periods, for all ops and for the first one.
func (c *Call) Retries() (full bool, near, first window.Instant) { return c.full, c.Near, c.nears[0] }

// Shares reports whether the reply is a part of one that has the instant of all calls.
func (r Reply) Shares() bool { return r.bare }

// Whole returns the reply as a program for one call writes it.
func (r Reply) Whole() string {
	if !r.Shares() {
		return r.text
	}
	b := put7([]byte{statusDone}, r.At)
	for text := r.text; text != ""; text = text[8:] {
		b = put7(b, getDouble(text))
	}
	return string(b)
}

// Repeats returns the indexes that appendRepeats appends.
func Repeats(keys []string) []int {
	var all []int
	for b := appendRepeats(nil, keys); len(b) > 0; b = b[2:] {
		all = append(all, int(b[0])|int(b[1])<<8)
	}
	return all
}

// Rest returns what is left of the reply to a batch.
func (r *Reply) Rest() string { return r.text }
