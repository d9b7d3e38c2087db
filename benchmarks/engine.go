package main

import (
	"fmt"
	"math"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// engine measures what rules cost beyond limiters.
func engine(s settings) (*report.Table, error) {
	peers := peer.Engine()
	keys := measure.NewKeys(1)
	var all started
	defer all.stop()
	var failed error
	var jobs []func() measure.Numbers
	for _, p := range peers {
		l, err := all.start(p, plenty())
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, func() measure.Numbers {
			speed := measure.Measure(l.Allow, keys, measure.One(), 1, s.slice)
			if speed.Admitted < 0.9 {
				failed = fmt.Errorf("%s: %s of the requests were admitted, want all", p.Name, report.Share(speed.Admitted))
			}
			return measure.Numbers{speed.Nanoseconds, speed.Allocs}
		})
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: "Rules",
		Text:  "The same request repeated on one core: `Engine.Do` with sliding rules per user, and `Limiter.Allow` with the same limit. The limit is 100 in some µs; in rows with *in groups* it is 10⁹ an hour. Every request is admitted.",
		Head:  []string{"", "ns", "× one rule", "× one Limiter", "allocations"},
		Notes: notes(peers),
	}
	rule, limiter := reference(peers, numbers, 0), numbers[0][0]
	for i, p := range peers {
		n := numbers[i]
		s.found.keep("engine", p.Name, []float64{n[0], n[1]}, "ns", "allocations")
		t.Row(label(p), report.Number(n[0]), report.Ratio(n[0]/rule), report.Ratio(n[0]/limiter), report.Number(math.Round(n[1])))
	}
	return t, nil
}
