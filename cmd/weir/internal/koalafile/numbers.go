package koalafile

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/weirhq/weir/rule"
)

// span is a range of whole numbers. Both ends are part of it.
type span struct{ from, to int64 }

const (
	lowest, highest = math.MinInt64, math.MaxInt64

	// exactly is the limit of bounds: values are compared as 64-bit floats,
	// which is exact for a bound below it.
	exactly = 1 << 53

	// maxSpans is the most separate ranges in one condition.
	maxSpans = 100
)

// isRange reports whether s is two whole numbers with - between. As in koala,
// the first must not be negative.
func isRange(s piece) bool {
	from, to, ok := s.cut("-")
	_, wrongFrom := strconv.ParseInt(from.trim().text, 10, 64)
	_, wrongTo := strconv.ParseUint(to.trim().text, 10, 63)
	return ok && wrongFrom == nil && wrongTo == nil
}

// ranges returns a test for whole numbers among elements, which are numbers and
// ranges.
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
			p.fault(e, "%q is not a whole number, unlike the others: want separate rules for text and for numbers", e.text)
		case x > y:
			p.fault(e, "the range is reversed: want %d-%d", y, x)
		case x >= exactly || y >= exactly && y != highest:
			p.fault(e, "%s is too large: want numbers below 2^53 = %d, up to which weir compares exactly, or %d for no upper end",
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

// integer holds for whole numbers of any length.
var integer = must(rule.Pattern(`^[+-]?[0-9]+$`))

func must(t rule.Test, err error) rule.Test {
	if err != nil {
		panic(err)
	}
	return t
}

// numbers returns a test for 64-bit whole numbers inside spans or, with not,
// outside them.
func (p *pass) numbers(c condition, spans []span) rule.Test {
	if spans = merged(spans); len(spans) > maxSpans {
		p.fault(c.value, "%d separate ranges: want at most %d in a condition; put many single values into a dict, key @ dict", len(spans), maxSpans)
		return nil
	}
	if c.not { // never empty: a condition cannot name all numbers
		spans = between(span{lowest, highest}, spans)
	}
	return rule.All(append([]rule.Test{integer}, inside(spans)...)...)
}

// inside returns the tests that together hold for the numbers in spans: from
// the first to the last, except those between. The ends of the 64-bit range are
// rounded: a number up to 1024 beyond them passes too.
func inside(spans []span) []rule.Test {
	hull := span{spans[0].from, spans[len(spans)-1].to}
	from, to := float64(hull.from), float64(hull.to)
	tests := []rule.Test{rule.Within(rule.Range{From: &from, To: &to})}
	if gaps := spans[1:]; len(gaps) > 0 {
		tests = append(tests, rule.Not(all(inside(between(hull, spans)))))
	}
	return tests
}

// all returns a test that holds if every one of tests does.
func all(tests []rule.Test) rule.Test {
	if len(tests) == 1 {
		return tests[0]
	}
	return rule.All(tests...)
}

// merged returns spans sorted, with overlapping and adjacent ones joined.
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

// between returns the parts of hull outside spans, which are merged and inside
// hull.
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
