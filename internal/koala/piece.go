package koala

import (
	"strings"
	"unicode"
)

// piece is a part of a line that knows where it stands, for the faults in it.
type piece struct {
	text string
	at   int // in the line, in bytes
}

// from and to are what of s is behind and before byte i of it.
func (s piece) from(i int) piece { return piece{s.text[i:], s.at + i} }
func (s piece) to(i int) piece   { return piece{s.text[:i], s.at} }

// trim is s without blanks around it.
func (s piece) trim() piece {
	right := strings.TrimRightFunc(s.text, isBlank)
	left := strings.TrimLeftFunc(right, isBlank)
	return piece{left, s.at + len(right) - len(left)}
}

// isBlank is what a condition's Trim cuts.
func isBlank(r rune) bool { return unicode.IsSpace(r) }

// without returns s without the bytes in cutset at its ends, and blanks there.
func (s piece) without(cutset string) piece {
	left := strings.TrimLeft(s.text, cutset)
	return piece{strings.TrimRight(left, cutset), s.at + len(s.text) - len(left)}.trim()
}

// cut is what stands before and behind the first sep in s.
func (s piece) cut(sep string) (before, after piece, found bool) {
	i := strings.Index(s.text, sep)
	if i < 0 {
		return s, s.from(len(s.text)), false
	}
	return s.to(i), s.from(i + len(sep)), true
}

// split is what stands between seps in s, trimmed, without what is empty.
func (s piece) split(sep string) []piece {
	var parts []piece
	for more := true; more; {
		var part piece
		part, s, more = s.cut(sep)
		if part = part.trim(); part.text != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
