package httpapi

import (
	"strconv"
	"strings"

	"github.com/weirhq/weir/fault"
)

// number reads the number at pos as its shortest plain decimal: 1e3 is 1000,
// 1.50 is 1.5, -0 is 0. It goes by the digits, so that long identifiers keep
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
	raw := view(s.src[start:s.pos])
	if plain {
		return raw, nil
	}
	begin := len(s.text)
	if !s.decimal(raw) {
		return "", s.fault(start, "a number with too many digits when written out")
	}
	return view(s.text[begin:]), nil
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.src) && s.src[s.pos] == c }

// digits skips digits and says how many.
func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.src) && '0' <= s.src[s.pos] && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

// decimal appends raw, a JSON number, to text without exponent and without
// zeros that say nothing. It is false when that is longer than a value may be.
func (s *scanner) decimal(raw string) bool {
	raw, negative := strings.CutPrefix(raw, "-")
	mantissa, exponent := raw, ""
	if i := strings.IndexAny(raw, "eE"); i >= 0 {
		mantissa, exponent = raw[:i], raw[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	// point is where the decimal point stands in digits, maybe outside.
	point := len(digits) - len(fraction) + clamped(exponent)
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		s.text = append(s.text, '0')
		return true
	}
	if max(point, len(digits))-min(point, 0) > maxAttribute {
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

func (s *scanner) zeros(n int) {
	for range n {
		s.text = append(s.text, '0')
	}
}

// clamped is an exponent, cut to what no body can even out.
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
