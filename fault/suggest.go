package fault

import (
	"strconv"
	"strings"
)

// maxWord is the maximum length, in bytes, of a word that is compared with names, and maxKnown the maximum number of them.
const maxWord, maxKnown = 64, 1000

// DidYouMean returns text to append to a message about an unknown word, such as
// `: did you mean "limit"?`. It suggests the known name that is closest to the
// word, regardless of case. If in every name more than a third of the word's
// letters differ, or if there are more than a thousand names, it returns "".
func DidYouMean(word string, known []string) string {
	if len(word) > maxWord || len(known) > maxKnown {
		return ""
	}
	word = strings.ToLower(word)
	best, least := "", len(word)/3+1
	for _, name := range known {
		if d := distance(word, strings.ToLower(name)); d < least || d == 0 {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + strconv.Quote(best) + "?"
}

// distance returns how many letters have to be inserted, removed, changed or
// swapped with their neighbour to turn a into b (optimal string alignment).
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
