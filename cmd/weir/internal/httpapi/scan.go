package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
)

// A scanner reads one JSON text by hand, without reflection and without
// allocations. It is stricter than encoding/json: a name may occur only once,
// names are case sensitive, text must be valid UTF-8, and nothing may follow
// the value.
//
// Strings are parts of src, unless they contain escapes or a number was rewritten.
type scanner struct {
	src  string
	pos  int
	text []byte

	depth  int      // of the value that is skipped; 0: none is
	placed position // of the last fault
}

// fault returns a fault of the text, at a byte of it.
func (s *scanner) fault(at int, format string, args ...any) *fault.Fault {
	f := fault.Newf("", format, args...)
	f.Place = s.place(at)
	return f
}

// twice returns the fault of a name that stands in an object a second time.
func (s *scanner) twice(at int) *fault.Fault { return s.fault(at, "is there twice") }

// missing returns the fault of a member that the object at a byte lacks.
func (s *scanner) missing(field string, at int) *fault.Fault {
	return s.fault(at, "is missing").In(field)
}

// place returns the line and the column, in characters, of a byte. It counts from the last place on, because
// each request of a batch can have a fault.
func (s *scanner) place(at int) fault.Place {
	p := &s.placed
	if at < p.at {
		*p = position{}
	}
	between := s.src[p.at:at]
	if newline := strings.LastIndexByte(between, '\n'); newline >= 0 {
		p.lines += strings.Count(between, "\n")
		p.characters, between = 0, between[newline+1:]
	}
	p.at, p.characters = at, p.characters+utf8.RuneCountInString(between)
	return fault.Place{Line: p.lines + 1, Column: p.characters + 1}
}

// position is a byte, the number of lines before that of the byte, and the number of characters before it in its line.
type position struct{ at, lines, characters int }

// reset sets s to the start of src.
func (s *scanner) reset(src []byte) {
	s.src, s.pos, s.text, s.depth, s.placed = string(src), 0, s.text[:0], 0, position{}
}

// peek skips blanks and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// unexpected returns the fault of the character at pos.
func (s *scanner) unexpected(want string) *fault.Fault {
	if s.pos >= len(s.src) {
		return s.fault(len(s.src), "the text ends, want %s", want)
	}
	got, _ := utf8.DecodeRuneInString(s.src[s.pos:])
	return s.fault(s.pos, "got %q, want %s", got, want)
}

// end checks that nothing but blanks is left.
func (s *scanner) end() *fault.Fault {
	if s.peek(); s.pos < len(s.src) {
		return s.unexpected("nothing after the object")
	}
	return nil
}

// more moves to the next item of an object or array and reports whether there
// is one. Otherwise it reads the closing bracket.
func (s *scanner) more(first bool, bracket byte) (bool, *fault.Fault) {
	switch c := s.peek(); {
	case c == bracket:
		s.pos++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.pos++
		return true, nil
	}
	return false, s.unexpected(fmt.Sprintf("',' or %q", bracket))
}

// object reads an object. It calls member with the name of each member and the
// name's offset; member reads the value.
func (s *scanner) object(member func(name string, at int) *fault.Fault) *fault.Fault {
	if s.peek() != '{' {
		return s.unexpected("an object")
	}
	s.pos++
	for first := true; ; first = false {
		if more, f := s.more(first, '}'); !more || f != nil {
			return f
		}
		name, at, f := s.quoted("a name in quotes")
		if f != nil {
			return f
		}
		if len(name) > sizes.Text { // the fault would repeat it
			if s.depth == 0 {
				return s.fault(at, "a name has %d bytes, more than %d", len(name), sizes.Text)
			}
			name = "…"
		}
		if s.peek() != ':' {
			return s.unexpected("':'").In(name)
		}
		s.pos++
		s.peek()
		if f := member(name, at); f != nil {
			return f
		}
	}
}

// maxDepth is how deep values may be nested in a value that is skipped.
const maxDepth = 100

// skip reads a value of any kind. A fault is one that makes the text no JSON.
func (s *scanner) skip() (f *fault.Fault) {
	s.depth++
	defer func() { s.depth-- }()
	switch c := s.peek(); {
	case s.depth > maxDepth:
		f = s.fault(s.pos, "is nested more than %d deep", maxDepth)
	case c == '{':
		f = s.object(func(name string, _ int) *fault.Fault { return s.skip().In(name) })
	case c == '[':
		f = s.array(func(int) *fault.Fault { return s.skip() })
	case c == 'n':
		f = s.literal("null")
	default:
		_, f = s.value()
	}
	return f
}

// array reads an array. It calls element with each index; element reads the
// value.
func (s *scanner) array(element func(i int) *fault.Fault) *fault.Fault {
	if s.peek() != '[' {
		return s.unexpected("an array")
	}
	s.pos++
	for i := 0; ; i++ {
		if more, f := s.more(i == 0, ']'); !more || f != nil {
			return f
		}
		s.peek()
		if f := element(i); f != nil {
			return f
		}
	}
}

// quoted reads a string, and returns where it starts, too. want is what the fault asks for if there is none.
func (s *scanner) quoted(want string) (text string, at int, f *fault.Fault) {
	if s.peek() != '"' {
		return "", s.pos, s.unexpected(want)
	}
	at = s.pos
	text, f = s.string()
	return text, at, f
}

// numeral reads a number as [scanner.number] does, and returns where it starts, too. want is as for quoted.
func (s *scanner) numeral(want string) (text string, at int, f *fault.Fault) {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return "", s.pos, s.unexpected(want)
	}
	at = s.pos
	text, f = s.number()
	return text, at, f
}

// string reads the string that starts at pos.
func (s *scanner) string() (string, *fault.Fault) {
	start := s.pos + 1
	ascii := true
	for i := start; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			if s.pos = i + 1; ascii {
				return s.src[start:i], nil
			}
			return s.checked(start, i)
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return "", s.fault(i, "byte 0x%02x in a string; write it as \\u%04x", c, c)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", s.fault(len(s.src), "the text ends inside a string")
}

// checked returns src[from:to] as a string, if it is valid UTF-8.
func (s *scanner) checked(from, to int) (string, *fault.Fault) {
	b := s.src[from:to]
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRuneInString(b[i:])
		if r == utf8.RuneError && n == 1 && s.depth == 0 {
			return "", s.fault(from+i, "text is not valid UTF-8")
		}
		i += n
	}
	return b, nil
}

// escaped reads a string that starts at start and has its first escape at esc.
func (s *scanner) escaped(start, esc int) (string, *fault.Fault) {
	begin := len(s.text)
	for plain := start; ; {
		s.pos = esc
		part, f := s.checked(plain, esc)
		if f != nil {
			return "", f
		}
		s.text = append(s.text, part...)
		if f := s.escape(); f != nil {
			return "", f
		}
		plain, esc = s.pos, s.pos
		for esc < len(s.src) && s.src[esc] != '\\' && s.src[esc] != '"' && s.src[esc] >= ' ' {
			esc++
		}
		if esc < len(s.src) && s.src[esc] == '\\' {
			continue
		}
		// The rest has no escape: string reads it up to the quote.
		s.pos = plain - 1
		rest, f := s.string()
		if f != nil {
			return "", f
		}
		s.text = append(s.text, rest...)
		return string(s.text[begin:]), nil
	}
}

// escapes maps the byte after a backslash to its meaning.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads the escape at pos into text.
func (s *scanner) escape() *fault.Fault {
	at := s.pos
	if at+1 >= len(s.src) {
		return s.fault(len(s.src), "the text ends inside a string")
	}
	c := s.src[at+1]
	if c != 'u' {
		if escapes[c] == 0 {
			return s.fault(at, `not an escape; JSON has \" \\ \/ \b \f \n \r \t and \u0000`)
		}
		s.text = append(s.text, escapes[c])
		s.pos += 2
		return nil
	}
	r, ok := s.unicode(at)
	if !ok {
		return s.fault(at, `\u wants four hexadecimal digits`)
	}
	s.pos += 6
	if utf16.IsSurrogate(r) {
		low, _ := s.unicode(s.pos)
		switch r = utf16.DecodeRune(r, low); {
		case r != utf8.RuneError:
			s.pos += 6
		case s.depth == 0:
			return s.fault(at, `half of a surrogate pair`)
		}
	}
	s.text = utf8.AppendRune(s.text, r)
	return nil
}

// unicode returns the value of the escape \uXXXX at an offset, and whether
// there is one.
func (s *scanner) unicode(at int) (rune, bool) {
	if at+6 > len(s.src) || s.src[at] != '\\' || s.src[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s.src[at+2 : at+6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// literal reads word, such as true.
func (s *scanner) literal(word string) *fault.Fault {
	if rest := s.src[s.pos:]; !strings.HasPrefix(rest, word) {
		return s.unexpected("a value")
	}
	s.pos += len(word)
	return nil
}

// number reads the number at pos and returns its shortest plain decimal: 1e3 is
// 1000, 1.50 is 1.5, -0 is 0. It works on digits, so that long identifiers keep
// all of theirs.
func (s *scanner) number() (string, *fault.Fault) {
	start := s.pos
	if s.src[s.pos] == '-' {
		s.pos++
	}
	whole := s.pos
	if s.digits() == 0 {
		return "", s.unexpected("a digit")
	}
	if s.src[whole] == '0' && s.pos > whole+1 {
		return "", s.fault(whole, "a number with a leading zero; write it in quotes to keep the zero")
	}
	plain := s.src[start] != '-' || s.src[whole] != '0'
	if s.at('.') {
		plain = false
		if s.pos++; s.digits() == 0 {
			return "", s.unexpected("a digit")
		}
	}
	if s.at('e') || s.at('E') {
		plain = false
		if s.pos++; s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return "", s.unexpected("a digit")
		}
	}
	raw := s.src[start:s.pos]
	if plain || s.depth > 0 {
		return raw, nil
	}
	begin := len(s.text)
	if !s.decimal(raw) {
		return "", s.fault(start, "a number with too many digits when written out")
	}
	written := string(s.text[begin:])
	s.text = s.text[:begin]
	return written, nil
}

// at reports whether c is the next byte.
func (s *scanner) at(c byte) bool { return s.pos < len(s.src) && s.src[s.pos] == c }

// digits skips digits and returns their number.
func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

// maxZeros is how many bytes longer than a number its plain decimal may be, so that the memory of a request is bounded by
// its size.
const maxZeros = 32

// decimal appends raw, a JSON number, to text without exponent and without
// needless zeros. It returns false when the result is longer than a value may
// be, or much longer than raw.
func (s *scanner) decimal(raw string) bool {
	raw, negative := strings.CutPrefix(raw, "-")
	mantissa, exponent := raw, ""
	if i := strings.IndexAny(raw, "eE"); i >= 0 {
		mantissa, exponent = raw[:i], raw[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	// point is the position of the decimal point in digits, possibly outside.
	point := len(digits) - len(fraction) + clamped(exponent)
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		s.text = append(s.text, '0')
		return true
	}
	if n := max(point, len(digits)) - min(point, 0); n > min(sizes.Text, len(raw)+maxZeros) {
		return false
	}
	if negative {
		s.text = append(s.text, '-')
	}
	switch {
	case point <= 0:
		s.text = append(s.text, "0."...)
		s.zeros(-point)
		s.text = append(s.text, digits...)
	case point >= len(digits):
		s.text = append(s.text, digits...)
		s.zeros(point - len(digits))
	default:
		s.text = append(s.text, digits[:point]...)
		s.text = append(s.text, '.')
		s.text = append(s.text, digits[point:]...)
	}
	return true
}

// zeros appends n zeros to text.
func (s *scanner) zeros(n int) {
	for range n {
		s.text = append(s.text, '0')
	}
}

// clamped returns an exponent, cut to a number beyond what the digits of any
// body can balance.
func clamped(exponent string) int {
	const most = 1 << 30
	n, err := strconv.Atoi(exponent)
	switch {
	case exponent == "":
		return 0
	case err == nil:
		return max(-most, min(n, most))
	case exponent[0] == '-':
		return -most
	}
	return most
}
