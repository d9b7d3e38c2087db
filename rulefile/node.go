package rulefile

import (
	"regexp"
	"strconv"
	"strings"
)

// node is a YAML value and its place.
type node struct {
	label        string // name in faults: the key that it stands under
	key          *node  // that key; nil in a list and for the whole document
	kind         kind
	line, column int // from 1; a column is a character

	text    string // value of a scalar; numbers and booleans as their shortest text
	raw     string // scalar as the file writes it
	quoted  bool
	items   []*node // of a list
	entries []entry // of a table
}

type entry struct{ key, value *node }

// kind is the type of a value, in a rule author's words.
type kind uint8

const (
	nothing kind = iota
	aText
	aNumber
	aBoolean
	aList
	aTable
)

var kindNames = [...]string{"empty", "text", "a number", "true or false", "a list", "a table of keys"}

// String returns a description of n for faults.
func (n *node) String() string {
	switch {
	case n.kind == aNumber || n.kind == aBoolean:
		return n.raw
	case n.quoted && n.kind == aText:
		return "text in quotes"
	case n.kind == aText:
		return strconv.Quote(n.text)
	}
	return kindNames[n.kind]
}

func (n *node) isScalar() bool { return n.kind == aText || n.kind == aNumber || n.kind == aBoolean }

// get returns the value of key in a table, or nil when there is none.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

var (
	integers = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	floats   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based    = regexp.MustCompile(`^0(x[0-9a-fA-F]+|o[0-7]+|b[01]+)$`)
)

// scalar sets n to the plain or quoted scalar s, by YAML 1.2's core schema with
// underscores in numbers. Whole numbers keep all their digits.
func (n *node) scalar(s string) {
	n.kind, n.text, n.raw = aText, s, s
	if n.quoted {
		return
	}
	switch s {
	case "", "~", "null", "Null", "NULL":
		n.kind, n.text = nothing, ""
		return
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.kind, n.text = aBoolean, strings.ToLower(s)
		return
	}
	switch {
	case integers.MatchString(s):
		n.kind, n.text = aNumber, shortest(strings.ReplaceAll(s, "_", ""))
	case based.MatchString(s):
		if v, err := strconv.ParseUint(s, 0, 64); err == nil {
			n.kind, n.text = aNumber, strconv.FormatUint(v, 10)
		}
	case floats.MatchString(s):
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			n.kind, n.text = aNumber, strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
}

// shortest returns a whole number without plus and leading zeros.
func shortest(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign = "-"
	}
	digits = strings.TrimLeft(digits, "+-0")
	if digits == "" {
		return "0"
	}
	return sign + digits
}

// ambiguous reports whether n is a number with leading zeros, such as 007,
// which other YAML readers take for octal and people for text.
func (n *node) ambiguous() bool {
	digits := strings.TrimLeft(n.raw, "+-")
	return n.kind == aNumber && len(digits) > 1 && digits[0] == '0' && integers.MatchString(n.raw)
}
