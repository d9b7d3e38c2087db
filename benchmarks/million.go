package main

import (
	"fmt"
	"math"
	"runtime"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// million measures limiters with many keys. Each turn makes a new limiter, so
// that no other limiter's memory is scanned or cached meanwhile.
func million(s settings) (*report.Table, error) {
	peers := peer.Million()
	keys := measure.NewKeys(s.keys)
	zipf, uniform := measure.Zipf(s.keys), measure.Uniform(s.keys)
	var failed error
	var jobs []func() measure.Numbers
	for _, p := range peers {
		jobs = append(jobs, func() measure.Numbers {
			before, idle := measure.Heap(), measure.Collection()
			l, err := start(p, scarce())
			if err != nil {
				failed = err
				return make(measure.Numbers, 8)
			}
			defer l.Stop()
			measure.Fill(l.Allow, keys, p.Hits)
			full, collection := measure.Heap(), measure.Collection()
			n := measure.Numbers{0, 0, 0, 0, (full - before) / float64(s.keys), collection, 0, idle}
			measure.Measure(l.Allow, keys, zipf, 1, s.settle)
			zipf := turns(func() measure.Numbers {
				one, two := measure.Measure(l.Allow, keys, zipf, 1, s.slice), measure.Measure(l.Allow, keys, zipf, 2, s.slice)
				return measure.Numbers{one.Nanoseconds, two.Nanoseconds, one.Allocs, one.Admitted}
			})
			n[0], n[1], n[3], n[6] = zipf[0], zipf[1], zipf[2], zipf[3]
			measure.Measure(l.Allow, keys, uniform, 1, s.settle)
			n[2] = measure.Measure(l.Allow, keys, uniform, 1, s.slice).Nanoseconds
			if p.Kind == peer.Cost {
				n[4], n[5], n[6] = measure.None(), measure.None(), measure.None()
			}
			runtime.KeepAlive(l)
			return n
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}

	idle := idleCollection(peers, numbers)
	t := &report.Table{
		Title: "A million keys in memory",
		Text: fmt.Sprintf("%s keys of 24 bytes, a quota of 100 a minute, nanoseconds per call. *zipf*: exponent 1.1. *bytes a key*: after a garbage collection, "+
			"with each key used once, including the key's text where a limiter keeps it. *GC*: one collection on one core with all keys in memory, the median of up to 15 in a row; %s ms without keys, measured before each row of weir. %s %s",
			report.Number(float64(s.keys)), report.Number(idle), s.settled(), s.inTurns()),
		Head: []string{
			"", "zipf, one core", "two cores", "gain", "uniform, one core", "× reference (zipf)", "on two", "allocations",
			"bytes a key", "GC ms", "admitted (zipf)",
		},
	}
	raw, raw2 := reference(peers, numbers, 0), reference(peers, numbers, 1)
	chart := report.Chart{Title: "A million keys, zipf, one core: nanoseconds per call", Unit: " ns"}
	for i, p := range peers {
		n := numbers[i]
		s.found.keep("million", p.Name, []float64{n[0], n[1], n[2], n[4], n[5], n[5] - n[7]}, "one", "two", "uniform", "bytes", "gc", "gc over")
		t.Row(label(p), report.Number(n[0]), report.Number(n[1]), report.Ratio(n[0]/n[1])+"×", report.Number(n[2]), report.Ratio(n[0]/raw), report.Ratio(n[1]/raw2),
			report.Number(math.Round(n[3])), report.Number(math.Round(n[4])), report.Number(n[5]), report.Share(n[6]))
		chart.Bars = append(chart.Bars, bar(p, n[0], report.Number(n[0])))
	}
	s.found.keep("million", "", []float64{idle}, "gc")
	t.Notes = notes(peers)
	var err error
	t.Chart, err = s.draw("million.svg", chart)
	return t, err
}

// idleCollection returns the milliseconds of a collection before a limiter of weir is made,
// as the median of these rows. Before other rows, what is left of a peer with goroutines
// or timers can be in it.
func idleCollection(peers []peer.Peer, numbers []measure.Numbers) float64 {
	var idle []measure.Numbers
	for i, n := range numbers {
		if peers[i].IsOurs() {
			idle = append(idle, n[len(n)-1:])
		}
	}
	return measure.Medians(idle)[0]
}
