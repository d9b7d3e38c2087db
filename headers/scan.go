package headers

import (
	"encoding/base64"
	"strconv"
)

// A member is one member of a List or a Dictionary of RFC 9651, as far as servers
// use it to state limits.
type member struct {
	key  string // of a Dictionary
	text string // the value, if it is a String or a Token
	n    int64  // the value, if it is an Integer

	isText, isInt bool // neither: a value of another type

	params []parameter
}

// parameter is one parameter of a member.
type parameter struct {
	name   string
	text   string // a String or a Token
	n      int64
	isText bool
	isInt  bool
}

// integer returns the last parameter called name, if it is an Integer.
func (m *member) integer(name string) (int64, bool) {
	for i := len(m.params) - 1; i >= 0; i-- {
		if p := &m.params[i]; p.name == name {
			return p.n, p.isInt
		}
	}
	return 0, false
}

// word returns the last parameter called name, if it is a String or a Token.
func (m *member) word(name string) string {
	for i := len(m.params) - 1; i >= 0; i-- {
		if p := &m.params[i]; p.name == name {
			return p.text
		}
	}
	return ""
}

// maxMembers bounds what is read of one field. Servers state a few policies.
const maxMembers = 64

// parseMembers reads a List, or a Dictionary if dictionary is set. It reports false
// if the field is malformed, has an inner list, or has too many members. Then the
// whole field must be ignored, as RFC 9651 requires.
func parseMembers(lines []string, dictionary bool) ([]member, bool) {
	var members []member
	for _, line := range lines {
		s := fieldScanner{rest: line}
		s.blanks()
		for s.rest != "" {
			m, ok := s.member(dictionary)
			if !ok || len(members) == maxMembers {
				return nil, false
			}
			members = append(members, m)
			s.whitespace()
			if s.rest == "" {
				break
			}
			if !s.take(',') {
				return nil, false
			}
			if s.whitespace(); s.rest == "" {
				return nil, false // a comma at the end
			}
		}
	}
	return members, true
}

// fieldScanner reads one line of a field.
type fieldScanner struct{ rest string }

func (s *fieldScanner) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// blanks skips spaces.
func (s *fieldScanner) blanks() {
	for s.take(' ') { // take moves on
	}
}

// whitespace skips spaces and tabs.
func (s *fieldScanner) whitespace() {
	for s.take(' ') || s.take('\t') { // take moves on
	}
}

// while takes the bytes that ok accepts.
func (s *fieldScanner) while(ok func(byte) bool) string {
	i := 0
	for i < len(s.rest) && ok(s.rest[i]) {
		i++
	}
	taken := s.rest[:i]
	s.rest = s.rest[i:]
	return taken
}

// member reads one member with its parameters.
func (s *fieldScanner) member(dictionary bool) (m member, ok bool) {
	if dictionary {
		if m.key, ok = s.key(); !ok {
			return m, false
		}
	}
	if !dictionary || s.take('=') {
		var v parameter
		if v, ok = s.value(); !ok {
			return m, false
		}
		m.text, m.n, m.isText, m.isInt = v.text, v.n, v.isText, v.isInt
	}
	m.params, ok = s.parameters()
	return m, ok
}

// parameters reads the parameters of a member.
func (s *fieldScanner) parameters() (list []parameter, ok bool) {
	for s.take(';') {
		s.blanks()
		name, ok := s.key()
		if !ok || len(list) == maxMembers {
			return nil, false
		}
		p := parameter{}
		if s.take('=') {
			if p, ok = s.value(); !ok {
				return nil, false
			}
		}
		p.name = name
		list = append(list, p)
	}
	return list, true
}

func (s *fieldScanner) key() (string, bool) {
	if s.rest == "" || !isLower(s.rest[0]) && s.rest[0] != '*' {
		return "", false
	}
	return s.while(func(c byte) bool {
		return isLower(c) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '*'
	}), true
}

// value reads a value without parameters.
func (s *fieldScanner) value() (p parameter, ok bool) {
	if s.rest == "" {
		return p, false
	}
	switch c := s.rest[0]; {
	case c == '"':
		p.text, ok = s.quoted()
		p.isText = ok
	case isDigit(c) || c == '-':
		p.n, p.isInt, ok = s.number()
	case c == ':':
		s.rest = s.rest[1:]
		text := s.while(func(c byte) bool { return isAlpha(c) || isDigit(c) || c == '+' || c == '/' || c == '=' })
		_, err := base64.StdEncoding.DecodeString(text)
		ok = s.take(':') && err == nil
	case c == '?':
		s.rest = s.rest[1:]
		ok = s.take('0') || s.take('1')
	case isAlpha(c) || c == '*':
		p.text = s.while(isTokenByte)
		p.isText, ok = true, true
	case c == '@':
		s.rest = s.rest[1:]
		if s.rest != "" {
			_, isInt, valid := s.number()
			ok = isInt && valid
		}
	}
	return p, ok
}

// quoted reads a String.
func (s *fieldScanner) quoted() (string, bool) {
	var unescaped []byte
	from := 1
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[from:i]
			if unescaped != nil {
				text = string(append(unescaped, text...))
			}
			s.rest = s.rest[i+1:]
			return text, true
		case c == '\\':
			if i+1 == len(s.rest) || s.rest[i+1] != '"' && s.rest[i+1] != '\\' {
				return "", false
			}
			unescaped = append(unescaped, s.rest[from:i]...)
			from = i + 1
			i++
		case c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// number reads an Integer, or a Decimal, for which isInt is false.
func (s *fieldScanner) number() (n int64, isInt, ok bool) {
	sign := ""
	if s.take('-') {
		sign = "-"
	}
	digits := s.while(isDigit)
	if digits == "" || len(digits) > 15 {
		return 0, false, false
	}
	if s.take('.') {
		fraction := s.while(isDigit)
		return 0, false, len(digits) <= 12 && fraction != "" && len(fraction) <= 3
	}
	n, err := strconv.ParseInt(sign+digits, 10, 64)
	return n, true, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c) || 'A' <= c && c <= 'Z' }

func isTokenByte(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~', ':', '/':
		return true
	}
	return isAlpha(c) || isDigit(c)
}
