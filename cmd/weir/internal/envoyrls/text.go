package envoyrls

import (
	"strings"

	"github.com/weirhq/weir"
)

// textOf returns entries as KEY=VALUE, separated by commas. Different entries have
// different texts: in keys and values, %, =, ~ and commas are %XX. A pattern that is
// not empty stands for the value of its entry, behind a tilde.
func textOf(entries []weir.Attribute, patterns []string) string {
	n := 0
	for _, e := range entries {
		n += len(e.Name) + len(e.Value) + 2
	}
	var b strings.Builder
	b.Grow(n)
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		writeEscaped(&b, e.Name)
		if len(patterns) > i && patterns[i] != "" {
			b.WriteByte('~')
			writeEscaped(&b, patterns[i])
			continue
		}
		b.WriteByte('=')
		writeEscaped(&b, e.Value)
	}
	return b.String()
}

func writeEscaped(b *strings.Builder, text string) {
	const special = "%=,~"
	for {
		i := strings.IndexAny(text, special)
		if i < 0 {
			b.WriteString(text)
			return
		}
		const hex = "0123456789ABCDEF"
		b.WriteString(text[:i])
		b.WriteByte('%')
		b.WriteByte(hex[text[i]>>4])
		b.WriteByte(hex[text[i]&15])
		text = text[i+1:]
	}
}
