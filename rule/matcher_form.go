package rule

import (
	"math"
	"slices"
	"strconv"
)

// FormOf returns how t was made, so that a program can write it down: the name of the
// function of this package, such as "Equal", with its arguments as text, or the tests that
// [Not] or [All] got. The arguments of [Within] are the name of each bound before its
// number, "from", "5"; that of [In] is the name of the list. A test that this package did
// not make has no function. The caller may change the slices.
func FormOf(t Test) (function string, arguments []string, tests []Test) {
	switch t := t.(type) {
	case equal:
		return "Equal", slices.Clone(t.values), nil
	case presence:
		if t {
			return "Present", nil, nil
		}
		return "Absent", nil, nil
	case not:
		return "Not", nil, []Test{t.test}
	case all:
		return "All", nil, slices.Clone(t)
	case in:
		return "In", []string{t.name}, nil
	case within:
		return "Within", t.bounds(), nil
	case address:
		if t.loose {
			return "LooseAddress", slices.Clone(t.patterns), nil
		}
		return "Address", slices.Clone(t.patterns), nil
	case prefix:
		return "Prefix", []string{string(t)}, nil
	case suffix:
		return "Suffix", []string{string(t)}, nil
	case pattern:
		return "Pattern", []string{t.re.String()}, nil
	}
	return "", nil, nil
}

// bounds returns the bounds that w was made of, each after its name.
func (w within) bounds() (bounds []string) {
	add := func(set bool, name string, number float64) {
		if set {
			bounds = append(bounds, name, strconv.FormatFloat(number, 'f', -1, 64))
		}
	}
	add(w.strictAbove, "above", w.above)
	add(!math.IsInf(w.from, -1), "from", w.from)
	add(w.strictBelow, "below", w.below)
	add(!math.IsInf(w.to, 1), "to", w.to)
	return bounds
}
