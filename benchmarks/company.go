package main

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// company measures weir beside the raw costs of a Redis server: whether callers
// who wait at the same time share the cost of a script.
func company(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Over Redis, in company",
		Text: "10,000 keys whose quota is never reached, client and server on the same cores. Decisions per second with 1, 64 and 256 callers, each of which " +
			"waits for its answer, and as parts of the rows they are held to. The floor decides 16 keys in one script with `GET`, a comparison and `SET PX`; a " +
			"sixteenth of the callers calls it.",
	}
	server, err := measure.StartRedis()
	if err != nil {
		t.Text = fmt.Sprintf("Not measured: %v. `make deps` installs it.", err)
		return t, nil
	}
	defer server.Stop()

	callers := []int{1, 64, 256}
	keys := measure.NewKeys(10_000)
	peers := peer.Company()
	var all started
	defer func() { all.stop() }()
	var jobs []func() measure.Numbers
	for _, p := range peers {
		l, err := all.start(p, peer.Config{Quota: 1_000_000_000, Window: time.Hour, Redis: server.Addr})
		if err != nil {
			return nil, err
		}
		l.Allow(keys.At(0)) // connects, and loads scripts
		jobs = append(jobs, func() measure.Numbers {
			n := make(measure.Numbers, 0, 5)
			var p99 float64
			for _, c := range callers {
				load := measure.Callers(l.Allow, keys, max(1, c/p.Decides()), 2*s.slice)
				n = append(n, load.PerSecond*float64(p.Decides()))
				if c == 64 {
					p99 = float64(load.P99)
				}
			}
			return append(n, p99)
		})
	}
	numbers := measure.Rounds(s.rounds, jobs)
	t.Head = []string{"", "1 caller", "64", "256", "× INCR (64)", "× EVALSHA (64)", "× floor (256)", "p99 at 64"}
	incr, evalsha, floor := numbers[0], numbers[1], numbers[2]
	for i, p := range peers {
		n := numbers[i]
		t.Row(label(p), report.Number(n[0]), report.Number(n[1]), report.Number(n[2]),
			report.Ratio(n[1]/incr[1]), report.Ratio(n[1]/evalsha[1]), report.Ratio(n[2]/floor[2]), report.Time(n[3]))
	}
	t.Notes = notes(peers)
	return t, nil
}
