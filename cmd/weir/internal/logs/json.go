package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// keys is a tree of the keys to find in an object or an array.
type keys struct {
	names    []string
	elements []int   // by name: the name as the index of an element, or -1
	below    []*keys // by name; nil if nothing below is wanted
	at       [][]int // by name: where the value goes
	under    [][]int // by name: where the values below go
	lengths  uint64  // bit n%64 is set if a name has n bytes
}

// add adds a path, whose value goes to values[at].
func (k *keys) add(path []string, at int) {
	i := 0
	for i < len(k.names) && k.names[i] != path[0] {
		i++
	}
	if i == len(k.names) {
		k.names, k.elements = append(k.names, path[0]), append(k.elements, element(path[0]))
		k.below, k.at, k.under = append(k.below, nil), append(k.at, nil), append(k.under, nil)
		k.lengths |= 1 << (len(path[0]) % 64)
	}
	if len(path) == 1 {
		k.at[i] = append(k.at[i], at)
		return
	}
	if k.below[i] == nil {
		k.below[i] = &keys{}
	}
	k.below[i].add(path[1:], at)
	k.under[i] = append(k.under[i], at)
}

// element returns the index of an array's element that name is, or -1.
func element(name string) int {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && strconv.Itoa(n) == name {
		return n
	}
	return -1
}

// find returns the index of a name, or -1.
func (k *keys) find(name string) int {
	if k == nil || k.lengths>>(len(name)%64)&1 == 0 {
		return -1
	}
	for i := range k.names {
		if k.names[i] == name {
			return i
		}
	}
	return -1
}

// findElement returns the index of the name of an array's nth element, or -1.
func (k *keys) findElement(n int) int {
	if k == nil {
		return -1
	}
	for i := range k.elements {
		if k.elements[i] == n {
			return i
		}
	}
	return -1
}

// jsonLine reads objects.
type jsonLine struct{ keys keys }

func newJSON(_ *format, fields []string) (extractor, error) {
	j := &jsonLine{}
	for at, path := range fields {
		j.keys.add(splitPath(path), at)
	}
	return j, nil
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
// number in its shortest form, "" for null, objects and arrays. Of keys that are
// there twice the last one counts.
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

// faultOf returns what is wrong with a line that is not JSON.
func faultOf(line string) error {
	var syntax *json.SyntaxError
	err := json.Unmarshal([]byte(line), new(json.RawMessage))
	if errors.As(err, &syntax) && syntax.Offset < int64(len(line)) {
		return fmt.Errorf("not a JSON object: fault in column %d", syntax.Offset)
	}
	return errors.New("not a JSON object: the line ends too early")
}

// pick sets the values that are wanted of an object or an array.
func pick(from gjson.Result, wanted *keys, values []string) {
	n, inArray := -1, from.IsArray()
	from.ForEach(func(name, value gjson.Result) bool {
		n++
		var i int
		if inArray {
			i = wanted.findElement(n)
		} else {
			i = wanted.find(textOf(name))
		}
		if i < 0 {
			return true
		}
		for _, at := range wanted.under[i] {
			values[at] = "" // the key was there before
		}
		if len(wanted.at[i]) > 0 {
			text := textOf(value)
			for _, at := range wanted.at[i] {
				values[at] = text
			}
		}
		if value.Type == gjson.JSON && wanted.below[i] != nil {
			pick(value, wanted.below[i], values)
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
