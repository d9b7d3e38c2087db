package main

import (
	"math"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// plenty returns a quota that no measurement uses up.
func plenty() peer.Config { return peer.Config{Quota: 1_000_000_000, Window: time.Hour} }

// scarce returns a quota that is used up at once.
func scarce() peer.Config { return peer.Config{Quota: 100, Window: time.Minute} }

// hot measures limiters with one key.
func hot(s settings) (*report.Table, error) {
	peers := peer.Hot()
	keys := measure.NewKeys(1)
	var all started
	defer all.stop()
	var jobs []func() measure.Numbers
	for _, p := range peers {
		free, err := all.start(p, plenty())
		if err != nil {
			return nil, err
		}
		denying := peer.Limiter{}
		if p.Kind == peer.Limits {
			if denying, err = all.start(p, scarce()); err != nil {
				return nil, err
			}
		}
		jobs = append(jobs, func() measure.Numbers {
			one := measure.Measure(free.Allow, keys, measure.One(), 1, s.slice)
			two := measure.Measure(free.Allow, keys, measure.One(), 2, s.slice)
			denied := measure.Speed{Nanoseconds: measure.None()}
			if denying.Allow != nil {
				denied = measure.Measure(denying.Allow, keys, measure.One(), 1, s.slice)
			}
			return measure.Numbers{one.Nanoseconds, two.Nanoseconds, denied.Nanoseconds, one.Allocs, one.Admitted}
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)

	t := &report.Table{
		Title: "One hot key in memory",
		Text: "Nanoseconds per call, of all cores together. Every row includes the loop and the call through a function value (see the empty call). " +
			"*Admitted*: with a quota that is never used up, 10⁹ an hour. *Denied*: with a quota of 100 a minute, used up.",
		Head: []string{"", "one core", "two cores", "denied, one core", "× reference", "on two", "allocations", "admitted"},
	}
	raw, raw2 := reference(peers, numbers, 0), reference(peers, numbers, 1)
	chart := report.Chart{Title: "One hot key, one core: nanoseconds per admitted call", Unit: " ns"}
	for i, p := range peers {
		n := numbers[i]
		s.found.keep("hot", p.Name, []float64{n[0], n[1], n[2], n[3]}, "one", "two", "denied", "allocations")
		admitted := "–"
		if p.Kind != peer.Cost {
			admitted = report.Share(n[4])
		}
		t.Row(label(p), report.Number(n[0]), report.Number(n[1]), report.Number(n[2]), report.Ratio(n[0]/raw), report.Ratio(n[1]/raw2),
			report.Number(math.Round(n[3])), admitted)
		if p.Kind != peer.Cost {
			chart.Bars = append(chart.Bars, bar(p, n[0], report.Number(n[0])))
		}
	}
	t.Notes = notes(peers)
	var err error
	t.Chart, err = s.draw("hot.svg", chart)
	return t, err
}
