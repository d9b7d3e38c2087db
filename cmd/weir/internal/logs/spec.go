package logs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
	"github.com/weirhq/weir/cmd/weir/internal/urlpath"
	"github.com/weirhq/weir/fault"
)

// Load reads the Spec in the YAML file at path.
func Load(path string) (Spec, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, err
	}
	return Parse(path, src)
}

// Parse reads src, which is YAML, as a Spec. The error is a [fault.List] with the
// place of the fault in the file called name.
func Parse(name string, src []byte) (Spec, error) {
	var file struct {
		Format     string            `yaml:"format"`
		Map        map[string]string `yaml:"map"`
		Set        map[string]string `yaml:"set"`
		Time       string            `yaml:"time"`
		TimeFormat string            `yaml:"time_format"`
		Timezone   string            `yaml:"timezone"`
		Year       int               `yaml:"year"`
		Pattern    string            `yaml:"pattern"`
		Columns    []string          `yaml:"columns"`
		Separator  string            `yaml:"separator"`
	}
	if err := yaml.UnmarshalWithOptions(src, &file, yaml.Strict()); err != nil {
		return Spec{}, fault.List{placed(name, src, err)}
	}
	s := Spec{
		Format: file.Format, Map: file.Map, Set: file.Set, Time: file.Time, TimeFormat: file.TimeFormat, Columns: file.Columns,
		Pattern: file.Pattern, Year: file.Year,
	}
	var err error
	if s.Comma, err = Separator(file.Separator); err == nil {
		s.Zone, err = Zone(file.Timezone)
	}
	if err == nil {
		_, err = s.Compile()
	}
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// placed returns err with its place.
func placed(name string, src []byte, err error) *fault.Fault {
	f := &fault.Fault{Problem: err.Error(), Place: fault.Place{File: name, Line: 1, Column: 1}}
	var at yaml.Error
	if errors.As(err, &at) {
		f.Problem = at.GetMessage()
		if t := at.GetToken(); t != nil {
			f.Place.Line, f.Place.Column = t.Position.Line, t.Position.Column
		}
	}
	if lines := strings.Split(string(src), "\n"); f.Place.Line <= len(lines) {
		f.Place.Source = strings.TrimSuffix(lines[f.Place.Line-1], "\r")
	}
	return f
}

// Separator returns the separator of columns that text means: one character, or
// tab. It returns 0 for an empty text.
func Separator(text string) (rune, error) {
	switch text {
	case "":
		return 0, nil
	case "tab", `\t`:
		return '\t', nil
	}
	r, size := utf8.DecodeRuneInString(text)
	if size != len(text) || r == utf8.RuneError || r == '"' || r == '\n' || r == '\r' {
		return 0, fault.Newf("separator", "%q: want one character, such as ; or tab", text)
	}
	return r, nil
}

// Zone returns the time zone called name, or nil for an empty name.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nil is the default of Spec.Zone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault.Newf("timezone", "unknown %q: want a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// field is a field of a line, with the functions that are applied to it.
type field struct {
	path      string
	functions []function
}

// function makes a value of the value of a field.
type function func(string) string

// functions are those that a field can name.
var functions = map[string]function{
	"path": func(v string) string {
		if v == "" {
			return "" // it is missing
		}
		return urlpath.Clean(v) // as the gate does, which also refuses what urlpath.Check does
	},
	"query": func(v string) string {
		_, v, _ = strings.Cut(v, "?")
		return v
	},
	"ip": withoutPort,
	"host": func(v string) string {
		if host, ok := hostOf(v); ok {
			v = host
		} else if strings.HasPrefix(v, "/") { // a path alone
			return ""
		}
		return withoutPort(v)
	},
	"method": func(v string) string {
		v, _ = accesslog.Request(v)
		return v
	},
	"url": func(v string) string {
		_, v = accesslog.Request(v)
		return v
	},
	"unescape": func(v string) string {
		if plain, err := url.PathUnescape(v); err == nil {
			return plain
		}
		return v
	},
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

// hostOf returns the host, with the port, of a URL with a scheme, such as https://host/path.
func hostOf(v string) (host string, ok bool) {
	scheme, rest, ok := strings.Cut(v, "://")
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss":
	default:
		return "", false
	}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return rest, ok
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
