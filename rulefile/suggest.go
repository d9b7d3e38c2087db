package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/fault"
)

// longest is how many bytes of an unknown word a fault repeats.
const longest = 64

// unknown returns the problem of a word that is none of names. It suggests the
// closest name. When none is close it lists the names, if they are few.
func unknown(what, got string, names []string) string {
	text := fmt.Sprintf("unknown %s %q", what, got)
	if len(got) > longest {
		text = fmt.Sprintf("unknown %s %q…", what, got[:longest])
	}
	if hasWideColon(got) {
		return text + wideColon
	}
	if hint := fault.DidYouMean(got, names); hint != "" {
		return text + hint
	}
	switch {
	case len(names) == 0:
		return text + ": none is defined"
	case len(names) <= 24:
		return fmt.Sprintf("%s: want %s", text, either(names))
	}
	return text
}

// either returns names as a choice: a, b or c.
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
