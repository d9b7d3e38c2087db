package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// keys is a tree of the keys to find in an object or an array, whose keys are numbers.
type keys struct {
	at    []int            // indexes of the value
	under []int            // indexes of the values below
	below map[string]*keys // nil: nothing below is wanted
}

// add adds a path, whose value goes to values[at].
func (k *keys) add(path []string, at int) {
	if len(path) == 0 {
		k.at = append(k.at, at)
		return
	}
	k.under = append(k.under, at)
	if k.below == nil {
		k.below = map[string]*keys{}
	}
	next := k.below[path[0]]
	if next == nil {
		next = &keys{}
		k.below[path[0]] = next
	}
	next.add(path[1:], at)
}

// jsonLine reads objects.
type jsonLine struct{ keys keys }

func newJSON(_ *format, fields []string) extractor {
	j := &jsonLine{}
	for at, path := range fields {
		j.keys.add(splitPath(path), at)
	}
	return j
}

// splitPath splits a path of keys at its dots. A key in quotes can contain dots.
func splitPath(path string) (keys []string) {
	for path != "" {
		if path[0] == '"' {
			if key, rest, ok := strings.Cut(path[1:], `"`); ok && (rest == "" || rest[0] == '.') {
				keys, path = append(keys, key), strings.TrimPrefix(rest, ".")
				continue
			}
		}
		key, rest, _ := strings.Cut(path, ".")
		keys, path = append(keys, key), rest
	}
	return keys
}

var errNotObject = errors.New("not a JSON object")

// extract sets values from an object. A value is the text of an attribute: a
// number in its shortest form, "" for null, objects and arrays. If a key
// occurs twice, the last one counts.
func (j *jsonLine) extract(line string, values []string) error {
	clear(values)
	if !strings.HasPrefix(strings.TrimLeft(line, " \t\r\n"), "{") {
		return errNotObject
	}
	if !gjson.Valid(line) {
		return faultOf(line)
	}
	pick(gjson.Parse(line), &j.keys, values)
	return nil
}

// faultOf returns the error of a line that is not JSON.
func faultOf(line string) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal([]byte(line), new(json.RawMessage))
	if errors.As(err, &syntax) && syntax.Offset < int64(len(line)) {
		return fmt.Errorf("not a JSON object: error in column %d", syntax.Offset)
	}
	return errors.New("not a JSON object: the line ends too early")
}

// pick sets the values that are wanted of an object or an array.
func pick(from gjson.Result, wanted *keys, values []string) {
	n, inArray := -1, from.IsArray()
	from.ForEach(func(name, value gjson.Result) bool {
		n++
		var next *keys
		if inArray {
			next = wanted.below[strconv.Itoa(n)]
		} else {
			next = wanted.below[textOf(name)]
		}
		if next == nil {
			return true
		}
		for _, at := range next.under {
			values[at] = "" // the key occurs again
		}
		if len(next.at) > 0 {
			text := textOf(value)
			for _, at := range next.at {
				values[at] = text
			}
		}
		if value.Type == gjson.JSON && next.below != nil {
			pick(value, next, values)
		}
		return true
	})
}

// textOf returns a value as the text of an attribute.
func textOf(value gjson.Result) string {
	switch value.Type {
	case gjson.String:
		if strings.Contains(value.Raw, `\u`) { // gjson drops what follows half of a surrogate pair
			var text string
			_ = json.Unmarshal([]byte(value.Raw), &text) // it is valid
			return text
		}
		return value.Str
	case gjson.Number:
		if strings.ContainsAny(value.Raw, ".eE") {
			return shortest(value.Raw)
		}
		return value.Raw
	case gjson.True, gjson.False:
		return value.Raw
	}
	return ""
}

// shortest returns a number that has a fraction or an exponent in its shortest form
// without an exponent. A number that is out of range stays as it is.
func shortest(number string) string {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return number
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
