package main

import (
	"math"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// rolling measures windows of statistics, which have no keys.
func rolling(s settings) (*report.Table, error) {
	windows := peer.Windows()
	keys := measure.NewKeys(1)
	var jobs []func() measure.Numbers
	for _, w := range windows {
		add, sum := w.New()
		adding := func(string) bool { add(); return true }
		summing := func(string) bool { return sum() >= 0 }
		jobs = append(jobs, func() measure.Numbers {
			one := measure.Measure(adding, keys, measure.One(), 1, s.slice)
			two := measure.Measure(adding, keys, measure.One(), 2, s.slice)
			add() // the sum must not be empty
			sums := measure.Measure(summing, keys, measure.One(), 1, s.slice)
			return measure.Numbers{one.Nanoseconds, two.Nanoseconds, one.Allocs, sums.Nanoseconds, sums.Allocs}
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	t := &report.Table{
		Title: "Rolling statistics",
		Text: "A window of 10 buckets over a second, in full use, as a program counts on its own hot paths. Nanoseconds per call. Each call adds 1, the value of a window that counts requests: " +
			"in weir that is one atomic addition. Other whole numbers need two, as in the row *floor*.",
		Head: []string{"", "add, one core", "two cores", "× reference", "allocations", "sum", "allocations"},
	}
	for i, w := range windows {
		n, name := numbers[i], w.Name
		s.found.keep("rolling", w.Name, []float64{n[0] / numbers[0][0], n[3]}, "ratio", "sum")
		if w.Reference {
			name = report.Bold(name)
		}
		t.Row(name, report.Number(n[0]), report.Number(n[1]), report.Ratio(n[0]/numbers[0][0]),
			report.Number(math.Round(n[2])), report.Number(n[3]), report.Number(math.Round(n[4])))
	}
	return t, nil
}
