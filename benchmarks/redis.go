package main

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// redis measures limiters that count in a Redis server on this machine.
func redis(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Over Redis",
		Text: "10,000 keys, 1,000 per minute, client and server on the same cores. Calls per second with 16, 64 and 256 callers, each of which waits for its answer, " +
			"and the 99th percentile with 64.",
	}
	server, err := measure.StartRedis()
	if err != nil {
		t.Text = fmt.Sprintf("Not measured: %v. `make deps` installs it.", err)
		return t, nil
	}
	defer server.Stop()

	callers := []int{16, 64, 256}
	keys := measure.NewKeys(10_000)
	peers := peer.Redis()
	var jobs []func() measure.Numbers
	var failed error
	for _, p := range peers {
		jobs = append(jobs, func() measure.Numbers {
			n := make(measure.Numbers, 5)
			l, err := start(p, peer.Config{Quota: 1000, Window: time.Minute, Redis: server.Addr})
			if err != nil {
				failed = err
				return n
			}
			defer l.Stop()
			if err := server.Flush(); err != nil {
				failed = err
			}
			l.Allow(keys.At(0)) // connects, and loads scripts
			for i, c := range callers {
				load := measure.Callers(l.Allow, keys, c, 2*s.slice)
				n[i] = load.PerSecond
				if c == 64 {
					n[3] = float64(load.P99)
				}
				n[4] = load.Admitted
			}
			return n
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	if failed != nil {
		return nil, failed
	}
	t.Head = []string{"", "16 callers", "64", "256", "× reference (64)", "p99 at 64", "admitted"}
	raw := reference(peers, numbers, 1)
	chart := report.Chart{Title: "Decisions a second over Redis, 64 callers", Longest: true}
	for i, p := range peers {
		n := numbers[i]
		chart.Bars = append(chart.Bars, bar(p, n[1], report.Number(n[1])))
		s.found.keep("redis", p.Name, []float64{n[1], n[1] / raw, n[3]}, "64", "ratio", "p99")
		t.Row(label(p), report.Number(n[0]), report.Number(n[1]), report.Number(n[2]), report.Ratio(n[1]/raw), report.Time(n[3]), report.Share(n[4]))
	}
	t.Notes = append(notes(peers), "An error counts as not admitted.")
	t.Chart, err = s.draw("redis.svg", chart)
	return t, err
}

// redisVersion starts a server and returns its version.
func redisVersion() string {
	server, err := measure.StartRedis()
	if err != nil {
		return "is missing"
	}
	defer server.Stop()
	return server.Version()
}
