package koala

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/weirhq/weir/rule"
)

// span is whole numbers, both ends in it.
type span struct{ from, to int64 }

const (
	lowest, highest = math.MinInt64, math.MaxInt64

	// exactly is where bounds must end: values are compared as 64-bit floats,
	// which is exact as long as the bound is below it.
	exactly = 1 << 53

	// maxSpans is the most ranges apart in one condition.
	maxSpans = 100
)

// isRange says whether s is two whole numbers with - between. A negative
// number is none, in koala and here.
func isRange(s piece) bool {
	from, to, ok := s.cut("-")
	_, wrongFrom := strconv.ParseInt(from.trim().text, 10, 64)
	_, wrongTo := strconv.ParseUint(to.trim().text, 10, 63)
	return ok && wrongFrom == nil && wrongTo == nil
}

// ranges is whether a value is a whole number among elements: numbers and
// ranges of them.
func (p *pass) ranges(c condition, elements []piece) rule.Test {
	var spans []span
	sound := len(p.faults)
	for _, e := range elements {
		from, to, ok := e.cut("-")
		if !ok {
			to = from
		}
		x, wrongFrom := strconv.ParseInt(from.trim().text, 10, 64)
		y, wrongTo := strconv.ParseInt(to.trim().text, 10, 64)
		switch {
		case wrongFrom != nil || wrongTo != nil:
			p.fault(e, "%q is not a whole number, like the others: want rules of their own for text and for numbers", e.text)
		case x > y:
			p.fault(e, "the range is reversed: want %d-%d", y, x)
		case x >= exactly || y >= exactly && y != highest:
			p.fault(e, "%s: weir compares whole numbers with numbers below 2^53 = %d exactly, and takes no others; for no end write %d",
				e.text, exactly, highest)
		default:
			spans = append(spans, span{x, y})
		}
	}
	if sound != len(p.faults) {
		return nil
	}
	return p.numbers(c, spans)
}

// integer holds for whole numbers in digits, of any length.
var integer = must(rule.Pattern(`^[+-]?[0-9]+$`))

func must(t rule.Test, err error) rule.Test {
	if err != nil {
		panic(err)
	}
	return t
}

// numbers is whether a value is a whole number of 64 bits inside spans, or,
// with not, outside of them.
func (p *pass) numbers(c condition, spans []span) rule.Test {
	if spans = merged(spans); len(spans) > maxSpans {
		p.fault(c.value, "%d ranges apart: want at most %d in a condition; many single values go into a dict, key @ dict", len(spans), maxSpans)
		return nil
	}
	if c.not { // a condition never names all numbers, so that some are left
		spans = between(span{lowest, highest}, spans)
	}
	return rule.All(append([]rule.Test{integer}, inside(spans)...)...)
}

// inside are the tests that hold together for the numbers in spans: the first
// to the last, but for what lies between. The ends of 64 bits are rounded:
// a number up to 1024 beyond them is taken for one inside.
func inside(spans []span) []rule.Test {
	hull := span{spans[0].from, spans[len(spans)-1].to}
	from, to := float64(hull.from), float64(hull.to)
	tests := []rule.Test{rule.Within(rule.Range{From: &from, To: &to})}
	if gaps := spans[1:]; len(gaps) > 0 {
		tests = append(tests, rule.Not(all(inside(between(hull, spans)))))
	}
	return tests
}

// all is a test that holds where every one of tests does.
func all(tests []rule.Test) rule.Test {
	if len(tests) == 1 {
		return tests[0]
	}
	return rule.All(tests...)
}

// merged is spans in order and apart.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		last := &joined[len(joined)-1]
		if last.to == highest || s.from <= last.to+1 {
			last.to = max(last.to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// between is what of hull is in none of spans, which are merged and inside.
func between(hull span, spans []span) []span {
	var gaps []span
	next := hull.from
	for _, s := range spans {
		if s.from > next {
			gaps = append(gaps, span{next, s.from - 1})
		}
		if s.to == hull.to {
			return gaps
		}
		next = s.to + 1
	}
	return append(gaps, span{next, hull.to})
}
