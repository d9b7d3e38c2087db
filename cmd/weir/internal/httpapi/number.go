package httpapi

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
)

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
	if plain {
		return raw, nil
	}
	begin := len(s.text)
	if !s.decimal(raw) {
		return "", s.fault(start, "a number with too many digits when written out")
	}
	return string(s.text[begin:]), nil
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

// decimal appends raw, a JSON number, to text without exponent and without
// needless zeros. It returns false when the result is longer than a value may
// be.
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
	if max(point, len(digits))-min(point, 0) > sizes.Text {
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
