package rule

import (
	"math"
	"strconv"
	"strings"
)

// Range is an interval of numbers. Above and Below are exclusive bounds, From
// and To inclusive ones. A nil bound is no bound; the zero Range contains every
// number.
type Range struct{ Above, Below, From, To *float64 }

// Within returns a test that holds for a decimal number inside r, such as 5,
// -0.5 or 1e3. Numbers are compared as float64; one that is too large for a
// float64 is infinite. The test holds for no other text, such as NaN, Inf, 0x10 or
// a number with blanks around it.
func Within(r Range) Test {
	w := within{
		above: math.Inf(-1), from: math.Inf(-1), below: math.Inf(1), to: math.Inf(1),
		strictAbove: r.Above != nil, strictBelow: r.Below != nil,
	}
	var words []string
	bound := func(word string, p *float64, to *float64) {
		if p != nil {
			*to = *p
			words = append(words, word+" "+strconv.FormatFloat(*p, 'f', -1, 64))
		}
	}
	bound("above", r.Above, &w.above)
	bound("from", r.From, &w.from)
	bound("below", r.Below, &w.below)
	bound("to", r.To, &w.to)
	w.text = strings.Join(append([]string{"is a number"}, words...), " ")
	return w
}

type within struct {
	above, from, below, to   float64
	strictAbove, strictBelow bool
	text                     string
}

func (w within) Holds(value string) bool {
	if !decimal(value) {
		return false
	}
	// The only possible error is a number out of range, which becomes ±Inf.
	f, _ := strconv.ParseFloat(value, 64)
	return f >= w.from && f <= w.to && (!w.strictAbove || f > w.above) && (!w.strictBelow || f < w.below)
}

func (w within) String() string { return w.text }

// empty reports whether no number is inside, because the bounds are reversed or
// NaN.
func (w within) empty() bool {
	low, high := max(w.above, w.from), min(w.below, w.to)
	strict := w.strictAbove && low == w.above || w.strictBelow && high == w.below
	return !(low < high || low == high && !strict)
}

// decimal reports whether s is an optional sign, digits with or without a
// point, and an optional exponent. [strconv.ParseFloat] would also accept "Inf",
// "NaN" and "0x1p4".
func decimal(s string) bool {
	s = unsigned(s)
	whole := digits(s)
	s = s[whole:]
	fraction := 0
	if s != "" && s[0] == '.' {
		fraction = digits(s[1:])
		s = s[1+fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = unsigned(s[1:])
	return s != "" && digits(s) == len(s)
}

// unsigned returns s without its sign.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

// digits returns the number of digits that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
