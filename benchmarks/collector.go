package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// collector measures single calls while the garbage collector works.
func collector(s settings) (*report.Table, error) {
	const (
		interval = 20 * time.Microsecond
		garbage  = 100 << 20 // bytes a second
	)
	peers := peer.CrowdedMillion()
	idle := peer.Peer{Name: "raw: an empty call", Kind: peer.Cost, New: func(peer.Config) (peer.Limiter, error) {
		return peer.Limiter{Allow: func(string) bool { return true }}, nil
	}}
	peers = append([]peer.Peer{idle}, peers...)
	keys, draw := measure.NewKeys(s.keys), measure.Zipf(s.keys)
	var failed error
	var jobs []func() measure.Numbers
	for _, p := range peers {
		jobs = append(jobs, func() measure.Numbers {
			l, err := start(p, scarce())
			if err != nil {
				failed = err
				return make(measure.Numbers, 5)
			}
			defer l.Stop()
			measure.Fill(l.Allow, keys, 1)
			beside := measure.NewBeside(s.pointers, garbage)
			defer beside.Close()
			runtime.GC()
			before := measure.Collections()
			h := measure.Open(l.Allow, keys, draw, interval, s.open)
			cycles := measure.Collections() - before
			runtime.KeepAlive(l)
			return measure.Numbers{float64(h.At(0.5)), float64(h.At(0.99)), float64(h.At(0.999)), float64(h.Max()), cycles}
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	t := &report.Table{
		Title: "Calls while the garbage collector works",
		Text: fmt.Sprintf("%s keys, zipf, one call every %v (an open loop), beside a heap of %s objects with pointers, %s MB, of which %s MB a second become garbage. "+
			"A time runs from the instant at which the call was due to its end. So it includes what the call before, the garbage collector and other programs of the machine do to it; "+
			"the empty call shows that part. *collections*: in %v.",
			report.Number(float64(s.keys)), interval, report.Number(float64(s.pointers)), report.Number(float64(s.pointers)*64/1e6), report.Number(garbage>>20), s.open),
		Head:  []string{"", "p50", "p99", "p99.9", "max", "collections"},
		Notes: notes(peers),
	}
	for i, p := range peers {
		n := numbers[i]
		t.Row(p.Name, report.Time(n[0]), report.Time(n[1]), report.Time(n[2]), report.Time(n[3]), report.Number(n[4]))
		s.found.keep("gc", p.Name, n, "p50", "p99", "p99.9", "max")
	}
	return t, nil
}
