package logs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
type jsonLine struct {
	keys keys
	scan scanner
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

// extract sets values from an object. A value is the text of an attribute: a
// number in its shortest form, "" for null, objects and arrays. Of keys that are
// there twice the last one counts.
func (j *jsonLine) extract(line string, values []string) error {
	clear(values)
	s := &j.scan
	s.text, s.at, s.values = line, 0, values
	if s.next() != '{' {
		return errNotObject
	}
	if s.object(&j.keys, 1) && s.next() == 0 && s.at == len(line) {
		return nil
	}
	if s.at >= len(line) {
		return errors.New("not a JSON object: the line ends too early")
	}
	return fmt.Errorf("not a JSON object: fault in column %d", s.at+1)
}
