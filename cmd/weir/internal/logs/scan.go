package logs

// scanner reads a JSON text from left to right, once. It accepts what RFC 8259
// defines, and picks the wanted values on the way. Its methods move at behind what
// they read. Where the text is not JSON they return false, and at is the place of
// the fault.
type scanner struct {
	text   string
	at     int
	values []string
}

// maxDepth is the most objects and arrays inside each other, as in encoding/json.
const maxDepth = 10_000

// next skips white space, and returns the byte that follows: 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// object reads an object, whose brace is at s.at, with the wanted keys in it.
func (s *scanner) object(wanted *keys, depth int) bool {
	if depth > maxDepth {
		return false
	}
	s.at++
	if s.next() == '}' {
		s.at++
		return true
	}
	for {
		if s.next() != '"' {
			return false
		}
		name, escaped, ok := s.quoted()
		if !ok || s.next() != ':' {
			return false
		}
		s.at++
		if escaped && wanted != nil {
			name = unescape(name)
		}
		if !s.member(wanted, wanted.find(name), depth) {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
		case '}':
			s.at++
			return true
		default:
			return false
		}
	}
}

// array reads an array, whose bracket is at s.at, with the wanted elements in it.
func (s *scanner) array(wanted *keys, depth int) bool {
	if depth > maxDepth {
		return false
	}
	s.at++
	if s.next() == ']' {
		s.at++
		return true
	}
	for n := 0; ; n++ {
		if !s.member(wanted, wanted.findElement(n), depth) {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
		case ']':
			s.at++
			return true
		default:
			return false
		}
	}
}

// member reads the value of a key or an element, which is wanted as name i, or not
// wanted if i < 0.
func (s *scanner) member(wanted *keys, i, depth int) bool {
	if i < 0 {
		return s.value(nil, nil, depth)
	}
	for _, at := range wanted.under[i] {
		s.values[at] = "" // the key was there before
	}
	return s.value(wanted.below[i], wanted.at[i], depth)
}

// value reads a value. Its text goes to the values at to.
func (s *scanner) value(wanted *keys, to []int, depth int) bool {
	text, ok := "", false
	switch c := s.next(); c {
	case '"':
		var escaped bool
		text, escaped, ok = s.quoted()
		if escaped && len(to) > 0 {
			text = unescape(text)
		}
	case '{':
		ok = s.object(wanted, depth+1)
	case '[':
		ok = s.array(wanted, depth+1)
	case 't':
		text, ok = "true", s.word("true")
	case 'f':
		text, ok = "false", s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		from := s.at
		var whole bool
		if whole, ok = s.number(); len(to) > 0 {
			if text = s.text[from:s.at]; ok && !whole {
				text = shortest(text)
			}
		}
	}
	for _, at := range to {
		s.values[at] = text
	}
	return ok
}

// word reads a word.
func (s *scanner) word(word string) bool {
	for i := range len(word) {
		if s.at == len(s.text) || s.text[s.at] != word[i] {
			return false
		}
		s.at++
	}
	return true
}

// number reads a number. whole reports whether it has neither a fraction nor an
// exponent.
func (s *scanner) number() (whole, ok bool) {
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return true, false
	}
	whole = true
	if s.at < len(s.text) && s.text[s.at] == '.' {
		whole = false
		s.at++
		if !s.digits() {
			return false, false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		whole = false
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return false, false
		}
	}
	return whole, true
}

// digits reads one digit or more.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > from
}
