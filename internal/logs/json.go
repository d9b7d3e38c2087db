package logs

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// keys is a tree of the keys to find in an object.
type keys struct {
	names []string
	below []*keys // by name; nil if nothing below is wanted
	at    [][]int // by name: where the value goes
}

// add adds a path, whose value goes to values[at].
func (k *keys) add(path []string, at int) {
	i := 0
	for i < len(k.names) && k.names[i] != path[0] {
		i++
	}
	if i == len(k.names) {
		k.names, k.below, k.at = append(k.names, path[0]), append(k.below, nil), append(k.at, nil)
	}
	if len(path) == 1 {
		k.at[i] = append(k.at[i], at)
		return
	}
	if k.below[i] == nil {
		k.below[i] = &keys{}
	}
	k.below[i].add(path[1:], at)
}

// jsonLine reads objects.
type jsonLine struct {
	keys keys
}

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

func (j *jsonLine) extract(line string, values []string) error {
	if !gjson.Valid(line) {
		return errNotObject
	}
	object := gjson.Parse(line)
	if !object.IsObject() {
		return errNotObject
	}
	clear(values)
	j.keys.find(object, values)
	return nil
}

// find sets values from an object or an array. It stops when it has found all keys,
// so of a key that is there twice it can take the first or the last.
func (k *keys) find(in gjson.Result, values []string) {
	index, left := 0, len(k.names)
	isArray := in.IsArray()
	in.ForEach(func(key, value gjson.Result) bool {
		name := key.Str
		if isArray {
			name = strconv.Itoa(index)
			index++
		}
		for i := range k.names {
			if k.names[i] != name {
				continue
			}
			for _, at := range k.at[i] {
				values[at] = text(value)
			}
			if k.below[i] != nil && value.IsObject() || value.IsArray() && k.below[i] != nil {
				k.below[i].find(value, values)
			}
			left--
			break
		}
		return left > 0
	})
}

// text returns a value as the text of an attribute: a number in its shortest
// form, "" for null, objects and arrays.
func text(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.True, gjson.False:
		return v.Raw
	case gjson.Number:
		if strings.ContainsAny(v.Raw, ".eE") {
			return strconv.FormatFloat(v.Num, 'f', -1, 64)
		}
		return v.Raw
	}
	return ""
}
