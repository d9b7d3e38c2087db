package main

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// In one turn the system runs client and server on one core, and in another one each on its
// own. It stays with that for some tenths of a second, most of all after a turn of a single
// caller, who waits for the server all the time. So turns are long, and before each of them
// the callers run for a while that does not count.
const (
	companyStart = 2 // slices
	companyTurn  = 6 // slices
)

// steady measures callers after their start.
func steady(allow func(string) bool, keys measure.Keys, callers int, slice time.Duration) measure.Load {
	measure.Callers(allow, keys, callers, companyStart*slice)
	return measure.Callers(allow, keys, callers, companyTurn*slice)
}

// company measures weir beside the raw costs of a Redis server: whether callers
// who wait at the same time share the cost of a script.
func company(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Over Redis, in company",
		Text: "10,000 keys whose quota is never reached, client and server on the same cores. Decisions per second with 1, 64 and 256 callers, each of which " +
			"waits for its answer, and as parts of the rows they are held to. The floor decides 16 keys in one script with `GET`, a comparison and `SET PX`; a " +
			"sixteenth of the callers calls it. The floors in company do that for callers of one key or three keys each, who travel together: a goroutine " +
			"takes the keys of all who wait, runs the script once, and wakes them. The floor with deadlines and answers does the same for a fixed window, with what weir promises to each caller: " +
			"a deadline, a key named after the limit and the caller, and the hits used, the wait and the time until the key is unused. *Apart*: 64 callers, with the server on a core of its own and the callers on the others. Otherwise the " +
			"system may run both on one core. " +
			fmt.Sprintf("Medians of at least %d turns of %v with each number of callers, the most callers first. Each turn begins with %v that do not count.", shortTurns, companyTurn*s.slice, companyStart*s.slice),
	}
	server, err := measure.StartRedis()
	if err != nil {
		t.Text = fmt.Sprintf("Not measured: %v. `make deps` installs it.", err)
		return t, nil
	}
	defer server.Stop()

	keys := measure.NewKeys(10_000)
	peers := peer.Company()
	var all started
	defer func() { all.stop() }()
	var jobs []func() measure.Numbers
	var failed error
	for _, p := range peers {
		l, err := all.start(p, peer.Config{Quota: 1_000_000_000, Window: time.Hour, Redis: server.Addr})
		if err != nil {
			return nil, err
		}
		l.Allow(keys.At(0)) // connects, and loads scripts
		load := func(callers int) measure.Load {
			load := steady(l.Allow, keys, max(1, callers/p.Decides()), s.slice)
			load.PerSecond *= float64(p.Decides())
			return load
		}
		jobs = append(jobs, func() measure.Numbers {
			many, some, one := load(256), load(64), load(1)
			apart := measure.None()
			if together, err := server.Apart(); err == nil {
				apart = load(64).PerSecond
				together()
			} else {
				failed = err
			}
			return measure.Numbers{one.PerSecond, some.PerSecond, many.PerSecond, apart, float64(some.P99)}
		})
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	t.Head = []string{"", "1 caller", "64", "256", "apart", "× INCR (64)", "× INCR (apart)", "× EVALSHA (64)", "× floor (256)", "× its floor in company (64)", "× with deadlines and answers (64)", "p99 at 64"}
	incr, evalsha, floor, ours := numbers[0], numbers[1], numbers[2], numbers[3]
	for i, p := range peers {
		n := numbers[i]
		if p.Name == "weir sliding, three rules" {
			ours = numbers[4]
		}
		s.found.keep("company", p.Name, []float64{n[1], n[2]}, "64", "256")
		t.Row(label(p), report.Number(n[0]), report.Number(n[1]), report.Number(n[2]), report.Number(n[3]), report.Ratio(n[1]/incr[1]), report.Ratio(n[3]/incr[3]),
			report.Ratio(n[1]/evalsha[1]), report.Ratio(n[2]/floor[2]), report.Ratio(n[1]/ours[1]), report.Ratio(n[1]/numbers[5][1]), report.Time(n[4]))
	}
	t.Notes = notes(peers)
	if failed != nil {
		t.Notes = append(t.Notes, "Apart was not measured: "+failed.Error()+".")
	}
	return t, nil
}

// apart measures weir beside the raw costs of a server that decides each call by itself.
func apart(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Over Redis, without company",
		Text: "The same 10,000 keys on a cluster of one node, where nearly every key has a slot of its own, so that a script run decides one call. Decisions " +
			"per second with 64 callers. The floor is a script that asks for the server's time, compares it with a deadline, reads a key and writes it with an expiry. " +
			fmt.Sprintf("Medians of at least %d turns of %v. Each turn begins with %v that do not count.", shortTurns, companyTurn*s.slice, companyStart*s.slice),
	}
	server, err := measure.StartCluster()
	if err != nil {
		t.Text = fmt.Sprintf("Not measured: %v. `make deps` installs it.", err)
		return t, nil
	}
	defer server.Stop()
	keys := measure.NewKeys(10_000)
	peers := peer.Apart()
	var all started
	defer func() { all.stop() }()
	var jobs []func() measure.Numbers
	for _, p := range peers {
		l, err := all.start(p, peer.Config{Quota: 1_000_000_000, Window: time.Hour, Redis: server.Addr, Cluster: true})
		if err != nil {
			return nil, err
		}
		l.Allow(keys.At(0)) // connects, and loads scripts
		jobs = append(jobs, func() measure.Numbers {
			load := steady(l.Allow, keys, 64, s.slice)
			return measure.Numbers{load.PerSecond, float64(load.P99)}
		})
	}
	numbers := measure.Rounds(max(s.rounds, shortTurns), jobs)
	t.Head = []string{"", "64 callers", "× INCR", "× EVALSHA", "× floor", "p99"}
	for i, p := range peers {
		n := numbers[i]
		s.found.keep("apart", p.Name, []float64{n[0]}, "64")
		t.Row(label(p), report.Number(n[0]), report.Ratio(n[0]/numbers[0][0]), report.Ratio(n[0]/numbers[1][0]), report.Ratio(n[0]/numbers[2][0]), report.Time(n[1]))
	}
	t.Notes = notes(peers)
	return t, nil
}
