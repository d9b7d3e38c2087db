package envoyfile

import "strings"

// glob reports whether text matches pattern, in which * stands for any
// characters. It takes time in proportion to the product of the lengths at most.
func glob(pattern, text string) bool {
	first, rest, any := strings.Cut(pattern, "*")
	if !any {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		part, more, any := strings.Cut(rest, "*")
		if !any {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}
