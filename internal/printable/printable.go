// Package printable makes text from a file or a request safe to show.
package printable

import (
	"strings"
	"unicode"
)

// Text returns text with U+FFFD instead of each character that is neither printable
// nor a tab, so that it cannot send control sequences to a terminal.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
