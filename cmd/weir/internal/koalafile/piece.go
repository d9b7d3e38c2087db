package koalafile

import (
	"strings"
	"unicode"
)

// piece is a part of a line, with its position for faults.
type piece struct {
	text string
	at   int // in the line, in bytes
}

// from and to return the parts of s behind and before byte i.
func (s piece) from(i int) piece { return piece{s.text[i:], s.at + i} }
func (s piece) to(i int) piece   { return piece{s.text[:i], s.at} }

// trim returns s without blanks at its ends.
func (s piece) trim() piece {
	right := strings.TrimRightFunc(s.text, isBlank)
	left := strings.TrimLeftFunc(right, isBlank)
	return piece{left, s.at + len(right) - len(left)}
}

// isBlank reports whether a condition's Trim cuts r.
func isBlank(r rune) bool { return unicode.IsSpace(r) }

// without returns s without the characters of cutset, and then blanks, at its
// ends.
func (s piece) without(cutset string) piece {
	left := strings.TrimLeft(s.text, cutset)
	return piece{strings.TrimRight(left, cutset), s.at + len(s.text) - len(left)}.trim()
}

// cut returns the parts of s before and behind the first sep.
func (s piece) cut(sep string) (before, after piece, found bool) {
	i := strings.Index(s.text, sep)
	if i < 0 {
		return s, s.from(len(s.text)), false
	}
	return s.to(i), s.from(i + len(sep)), true
}

// split returns the parts of s between seps, trimmed, without empty ones.
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
