package main

import (
	"fmt"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// matching measures how long it takes to find the rules that match a request.
func matching(s settings) (*report.Table, error) {
	numbers, err := s.alone(peer.Matching())
	if err != nil {
		return nil, err
	}
	t := &report.Table{
		Title: "Matching",
		Text: "Nanoseconds to find the two rules that match a request, another one each time. *own*: every rule has a value of its own. " +
			"*shared*: all rules have one condition in common. *spread*: the conditions are on four attributes.",
		Head: append([]string{"rules"}, peer.Layouts()...),
	}
	columns := len(peer.Layouts())
	for i, n := range peer.RuleCounts() {
		var cells []string
		for _, v := range numbers[i*columns : (i+1)*columns] {
			cells = append(cells, report.Number(v))
		}
		t.Row(report.Number(float64(n)), cells...)
		s.found.keep("matching", fmt.Sprint(n), numbers[i*columns:(i+1)*columns], peer.Layouts()...)
	}
	return t, nil
}

// windows measures the arithmetic of windows, without a store.
func windows(s settings) (*report.Table, error) {
	kinds, cases := peer.WindowKinds(), peer.WindowCases()
	numbers, err := s.alone(peer.WindowPeers())
	if err != nil {
		return nil, err
	}
	t := &report.Table{
		Title: "Windows",
		Text:  "Nanoseconds of the arithmetic alone, without a store: a take of one hit, a little over the quota, and a denial. Nothing allocates.",
		Head:  append([]string{""}, cases...),
	}
	for i, kind := range kinds {
		var cells []string
		for _, v := range numbers[i*len(cases) : (i+1)*len(cases)] {
			cells = append(cells, report.Number(v))
		}
		t.Row(kind, cells...)
	}
	return t, nil
}

// alone measures peers that ignore their key, on one core. It returns nanoseconds per
// call.
func (s settings) alone(peers []peer.Peer) ([]float64, error) {
	keys := measure.NewKeys(1)
	var all started
	defer all.stop()
	var jobs []func() measure.Numbers
	for _, p := range peers {
		l, err := all.start(p, peer.Config{})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, func() measure.Numbers {
			return measure.Numbers{measure.Measure(l.Allow, keys, measure.One(), 1, s.slice).Nanoseconds}
		})
	}
	var flat []float64
	for _, n := range measure.Rounds(s.rounds, jobs) {
		flat = append(flat, n[0])
	}
	return flat, nil
}
