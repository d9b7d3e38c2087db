package logs

import (
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string, whose quotation mark is at s.at. It returns what is
// between the marks, and whether escapes are in it.
func (s *scanner) quoted() (text string, escaped, ok bool) {
	from, t := s.at+1, s.text
	for at := from; ; {
		for at+8 <= len(t) {
			if n := special(word8(t[at:])); n < 8 {
				at += n
				break
			}
			at += 8
		}
		for at < len(t) && t[at] >= ' ' && t[at] != '"' && t[at] != '\\' {
			at++
		}
		if s.at = at; at == len(t) || t[at] < ' ' {
			return "", false, false
		}
		if t[at] == '"' {
			s.at++
			return t[from:at], escaped, true
		}
		escaped = true
		if at += escape(t[at:]); at == s.at {
			return "", false, false
		}
	}
}

// word8 returns the first eight bytes of t as a number, the first byte lowest.
func word8(t string) uint64 {
	_ = t[7]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}

// special returns the index of the first byte in w that ends a run of plain
// characters: a quotation mark, a backslash or a control character. It returns 8 if
// w has none. Each line marks bytes in their highest bit. A borrow can mark bytes
// above the first one that is meant, never below.
func special(w uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	found := (quote - ones) &^ quote
	found |= (slash - ones) &^ slash
	found |= (w - ones*' ') &^ w
	return bits.TrailingZeros64(found&highs) / 8
}

// escape returns the length of the escape at the start of t, or 0 if t starts with
// none.
func escape(t string) int {
	if len(t) < 2 {
		return 0
	}
	switch t[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(t[2:]); ok {
			return 6
		}
	}
	return 0
}

// hex4 returns the number of the four hexadecimal digits at the start of t.
func hex4(t string) (r rune, ok bool) {
	if len(t) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := t[i]
		switch lower := c | 0x20; {
		case c-'0' <= 9:
			c -= '0'
		case lower-'a' <= 5:
			c = lower - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape returns text, whose escapes are valid, with the characters that they
// stand for. A surrogate without its other half becomes U+FFFD.
func unescape(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		c := text[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		switch c = text[i+1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(text[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if i+6 <= len(text) && text[i] == '\\' && text[i+1] == 'u' {
					low, _ = hex4(text[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
		i += 2
	}
	return string(out)
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
