package logs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is a field of a line and what is made of it.
type field struct {
	path      string
	functions []function
}

// function makes a value of the value of a field.
type function func(string) string

// functions are those that a field can name.
var functions = map[string]function{
	"path": func(v string) string {
		v, _, _ = strings.Cut(v, "?")
		return v
	},
	"query": func(v string) string {
		_, v, _ = strings.Cut(v, "?")
		return v
	},
	"ip":    withoutPort,
	"host":  withoutPort,
	"first": func(v string) string { return part(v, 0) },
	"last":  func(v string) string { return part(v, -1) },
	"lower": strings.ToLower,
}

// parseField parses a field with its functions.
func parseField(text string) (field, error) {
	parts := strings.Split(text, "|")
	f := field{path: strings.TrimPrefix(strings.TrimSpace(parts[0]), ".")}
	if f.path == "" {
		return f, fmt.Errorf("%q names no field", text)
	}
	for _, name := range parts[1:] {
		function := functions[strings.TrimSpace(name)]
		if function == nil {
			return f, fmt.Errorf("unknown function %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
		}
		f.functions = append(f.functions, function)
	}
	return f, nil
}

// withoutPort returns an address or a host without its port, and an IPv6 address
// without brackets.
func withoutPort(v string) string {
	if strings.HasPrefix(v, "[") {
		inner, _, _ := strings.Cut(v[1:], "]")
		return inner
	}
	if strings.Count(v, ":") == 1 {
		v, _, _ = strings.Cut(v, ":")
	}
	return v
}

// part returns an element of a list with commas: the first, or the last one for
// -1.
func part(v string, n int) string {
	if n < 0 {
		return strings.TrimSpace(v[strings.LastIndexByte(v, ',')+1:])
	}
	v, _, _ = strings.Cut(v, ",")
	return strings.TrimSpace(v)
}
