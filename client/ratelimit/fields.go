package ratelimit

import "github.com/dunglas/httpsfv"

// maxField is the maximum size of a field, in bytes: about a hundred policies. Servers state a
// few.
const maxField = 8 << 10

// parseList returns the members of a List of RFC 9651 that are single items. A field that
// is malformed or too long has none.
func parseList(lines []string) []httpsfv.Item {
	if tooLong(lines) {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	items := make([]httpsfv.Item, 0, len(list))
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			items = append(items, item)
		}
	}
	return items
}

// parseDictionary returns the Integers of a Dictionary of RFC 9651. A field that is
// malformed or too long has none.
func parseDictionary(lines []string) map[string]int64 {
	if tooLong(lines) {
		return nil
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil
	}
	numbers := map[string]int64{}
	for _, name := range dictionary.Names() {
		member, _ := dictionary.Get(name)
		if item, ok := member.(httpsfv.Item); ok {
			if n, ok := item.Value.(int64); ok {
				numbers[name] = n
			}
		}
	}
	return numbers
}

func tooLong(lines []string) bool {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	return size > maxField
}

// text returns a value that is a String or a Token.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	}
	return "", false
}

// word returns a parameter that is a String or a Token.
func word(item httpsfv.Item, name string) string {
	value, _ := item.Params.Get(name)
	s, _ := text(value)
	return s
}

// integer returns a parameter that is an Integer.
func integer(item httpsfv.Item, name string) (int64, bool) {
	value, _ := item.Params.Get(name)
	n, ok := value.(int64)
	return n, ok
}
