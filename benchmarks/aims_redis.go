package main

import "github.com/weirhq/weir/benchmarks/report"

// The names of rows over Redis that aims refer to.
const (
	incrRow       = "raw: INCR, rueidis"
	evalshaRow    = "raw: EVALSHA of one INCR, rueidis"
	sixteenRow    = "raw: floor, a script for 16 keys"
	sharedRow     = "raw: floor in company"
	sharedThree   = "raw: floor in company, three keys each"
	contractRow   = "raw: floor in company, with deadlines and answers"
	aloneRow      = "raw: floor, one key with a deadline"
	redisThreeRow = "weir sliding, three rules"
)

// redisAims returns the aims of callers over Redis. Beside each stands the same number of a
// floor: a program that does for its callers what weir promises, or part of it, and nothing
// else.
func redisAims() []aim {
	return []aim{
		{"over Redis, 64 callers: decisions a second in a sliding window, a bucket, a fixed window", "≥ 0.9 × INCR", kinds("company", "64", incrRow, contractRow, 0.9, 0.9)},
		{"the same, 256 callers", "≥ 0.9 × a script for 16 keys", kinds("company", "256", sixteenRow, contractRow, 0.9, 0.9)},
		{"the same, three rules, in time of one", "≤ 1.6 ×", func(f found) (string, bool) {
			n := f.at("company", slidingRow, "64") / f.at("company", redisThreeRow, "64")
			return times(n) + "; the floor " + times(f.at("company", sharedRow, "64")/f.at("company", sharedThree, "64")), n <= 1.6
		}},
		{"over Redis, 64 callers without company, the three kinds", "≥ 0.75; 0.65; 0.65 × EVALSHA of INCR", kinds("apart", "64", evalshaRow, aloneRow, 0.75, 0.65)},
	}
}

// kinds returns an aim for the rates of a section's rows for the three kinds of windows, in
// parts of that of base. A sliding window has another least part than the others. floor is
// the row whose part is printed, too.
func kinds(section, callers, base, floor string, sliding, others float64) func(found) (string, bool) {
	return func(f found) (string, bool) {
		part := func(row string) float64 { return f.at(section, row, callers) / f.at(section, base, callers) }
		s, b, x := part(slidingRow), part(bucketRow), part(fixedRow)
		text := report.Ratio(s) + "; " + report.Ratio(b) + "; " + times(x) + "; the floor " + times(part(floor))
		return text, s >= sliding && b >= others && x >= others
	}
}
