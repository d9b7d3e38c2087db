package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// crowds are the goroutines for each core. The first crowd has one core alone.
var crowds = []int{1, 1, 2, 8}

// cores measures what limiters gain from all cores of the machine.
func cores(s settings) (*report.Table, error) {
	n := runtime.NumCPU()
	chart := report.Chart{
		Title: "Million decisions a second: one core, and all cores of the machine", Longest: true, Given: true,
		Series: []string{"one core", fmt.Sprintf("%d cores, a goroutine each", n), fmt.Sprintf("%d cores, 8 goroutines each", n)},
	}
	first, err := s.crowd("hot", "several cores, one hot key, admitted", peer.CrowdedHot(), plenty(), measure.One(), measure.NewKeys(1), &chart)
	if err != nil {
		return nil, err
	}
	denied, err := s.crowd("denied", "Several cores, one hot key, denied", without(peer.CrowdedHot(), peer.Flows), scarce(), measure.One(), measure.NewKeys(1), &chart)
	if err != nil {
		return nil, err
	}
	zipf, err := s.crowd("zipf", "Several cores, a million keys, zipf", peer.CrowdedMillion(), scarce(), measure.Zipf(s.keys), measure.NewKeys(s.keys), &chart)
	if err != nil {
		return nil, err
	}
	first.Title = "Several cores"
	first.Text = fmt.Sprintf("One hot key with a quota that is never used up. Nanoseconds per call, of all goroutines together, on one core and on all %d cores with 1, 2 and 8 goroutines for each core. "+
		"*gain*: how many times the calls of one core all cores make. *waiting*: the share of their time in which goroutines wait for a mutex, with 8 for each core; "+
		"a goroutine that has no core is not waiting for a mutex. %s", n, s.inTurns())
	denied.Text = "The same with a quota of 100 a minute, used up."
	zipf.Text = fmt.Sprintf("%s keys, a quota of 100 a minute. %s", report.Number(float64(s.keys)), s.settled())
	first.More = []*report.Table{denied, zipf}
	first.Chart, err = s.draw("cores.svg", chart)
	return first, err
}

// without returns the peers that are not of a kind.
func without(peers []peer.Peer, kind peer.Kind) []peer.Peer {
	return slices.DeleteFunc(peers, func(p peer.Peer) bool { return p.Kind == kind })
}

// crowd measures peers with all crowds, and adds weir's and the reference's rows to
// the chart.
func (s settings) crowd(section, title string, peers []peer.Peer, c peer.Config, draw measure.Draw, keys measure.Keys, chart *report.Chart) (*report.Table, error) {
	n := runtime.NumCPU()
	var failed error
	var jobs []func() measure.Numbers
	for _, p := range peers {
		jobs = append(jobs, func() measure.Numbers {
			l, err := start(p, c)
			if err != nil {
				failed = err
				return make(measure.Numbers, len(crowds)+1)
			}
			defer l.Stop()
			if keys.Len() > 1 {
				measure.Fill(l.Allow, keys, 1)
				runtime.GC()
				measure.Measure(l.Allow, keys, draw, 1, s.settle)
			} else {
				measure.Measure(l.Allow, keys, draw, 1, s.slice) // warm
			}
			numbers := turns(func() (numbers measure.Numbers) {
				waiting := 0.0
				for i, each := range crowds {
					some := n
					if i == 0 {
						some = 1
					}
					speed := measure.Crowd(l.Allow, keys, draw, some, some*each, s.slice)
					numbers, waiting = append(numbers, speed.Nanoseconds), speed.Waiting
				}
				return append(numbers, waiting)
			})
			runtime.KeepAlive(l)
			return numbers
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: title,
		Head:  []string{"", "one core", "all, 1 a core", "gain", "all, 2 a core", "all, 8 a core", "gain", "waiting"},
		Notes: notes(peers),
	}
	for i, p := range peers {
		v := numbers[i]
		t.Row(label(p), report.Number(v[0]), report.Number(v[1]), report.Ratio(v[0]/v[1])+"×", report.Number(v[2]), report.Number(v[3]),
			report.Ratio(v[0]/v[3])+"×", report.Share(v[4]))
		s.found.keep("cores "+section, p.Name, []float64{v[0] / v[1], v[0] / v[3], v[0], v[1]}, "gain", "gain 8", "one", "all")
		if p.IsOurs() || p.Reference {
			millions := []float64{1e3 / v[0], 1e3 / v[1], 1e3 / v[3]}
			b := bar(p, millions[1], "")
			if p.Reference {
				b.Label = "raw"
			}
			b.Label = map[string]string{"hot": "hot key", "denied": "denied", "zipf": "zipf"}[section] + ": " + b.Label
			for _, m := range millions {
				b.Values, b.Texts = append(b.Values, m), append(b.Texts, report.Number(m))
			}
			chart.Bars = append(chart.Bars, b)
		}
	}
	return t, nil
}
