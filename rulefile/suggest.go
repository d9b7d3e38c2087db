package rulefile

import (
	"fmt"
	"slices"
	"strings"
)

// longest is the most bytes of a word that was not understood which a fault
// repeats; a longer one is meant to be none of the names.
const longest = 64

// unknown says that there is no such what, and which one was perhaps meant:
// the nearest of names, or all of them when they are few.
func unknown(what, got string, names []string) string {
	text := fmt.Sprintf("unknown %s %q", what, got)
	if len(got) > longest {
		text = fmt.Sprintf("unknown %s %q…", what, got[:longest])
	}
	if near := nearest(got, names); near != "" {
		return fmt.Sprintf("%s: did you mean %q?", text, near)
	}
	switch {
	case len(names) == 0:
		return text + ": none is defined"
	case len(names) <= 24:
		return fmt.Sprintf("%s: want %s", text, either(names))
	}
	return text
}

// nearest is the name that got was perhaps meant to be, empty when none is
// near: a third of its letters may differ, and capitals don't count.
func nearest(got string, names []string) string {
	got = strings.ToLower(got)
	if len(got) > longest {
		return ""
	}
	best, least := "", len(got)/3+1
	for _, name := range names {
		if d := distance(got, strings.ToLower(name)); d < least || d == 0 {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out, changed or swapped
// with their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			change := last[j]
			if s[i] != t[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}

// either lists names as a choice: a, b or c.
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// sorted are the keys of m in order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
