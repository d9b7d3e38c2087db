package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/report"
)

// stoppedTimeouts are the time-outs that are measured: the default of the store with the
// one of Envoy that docs/envoy.md has, and the ones for Envoy's default.
var stoppedTimeouts = []struct{ store, envoy time.Duration }{
	{50 * time.Millisecond, 100 * time.Millisecond},
	{10 * time.Millisecond, 20 * time.Millisecond},
}

// stoppedWays are the ways in which Redis stops answering.
var stoppedWays = []struct {
	name string
	stop func(*measure.Server) error
}{
	{"paused", (*measure.Server).Pause},
	{"killed", (*measure.Server).Kill},
}

// The columns of the numbers of calls without Redis.
const (
	stoppedBefore = iota // while it answers
	stoppedMedian
	stoppedMost999
	stoppedMost
	stoppedFailed
)

// stopped measures Envoy's calls in an open loop while Redis stops answering.
func stopped(s settings) (*report.Table, error) {
	t := &report.Table{
		Title: "Envoy's calls when Redis stops answering",
		Text: fmt.Sprintf("The open loop of the table above, over Redis, with `on_outage: local`: %s calls a second begin, whatever became of those before. After a quarter of the time, Redis is paused (SIGSTOP) or killed. "+
			"Each call has a deadline, Envoy's time-out. *failed*: calls without an answer until then. *slowest* and *failed* are those of the worst round.", report.Number(envoyRate)),
		Head: []string{"Redis is", "`--store-timeout`", "Envoy's time-out", "before: p99.9", "after: p50", "p99.9", "slowest", "failed"},
	}
	for _, timeout := range stoppedTimeouts {
		for _, way := range stoppedWays {
			var turns []measure.Numbers
			for range s.rounds {
				n, err := stoppedTurn(s, timeout.store, timeout.envoy, way.stop)
				if errors.Is(err, errNoRedis) {
					t.Text, t.Head = "Not measured: "+err.Error()+".", nil
					return t, nil
				} else if err != nil {
					return nil, fmt.Errorf("%s: %w", way.name, err)
				}
				turns = append(turns, n)
			}
			n := measure.Medians(turns)
			for _, turn := range turns { // of these, the worst turn counts
				n[stoppedMost], n[stoppedFailed] = max(n[stoppedMost], turn[stoppedMost]), max(n[stoppedFailed], turn[stoppedFailed])
			}
			t.Row(way.name, timeout.store.String(), timeout.envoy.String(), report.Time(n[stoppedBefore]), report.Time(n[stoppedMedian]), report.Time(n[stoppedMost999]), report.Time(n[stoppedMost]),
				report.Number(n[stoppedFailed]))
			s.found.keep("stopped", fmt.Sprint(way.name, " ", timeout.store), []float64{n[stoppedMost], n[stoppedFailed]}, "slowest", "failed")
		}
	}
	return t, nil
}

var errNoRedis = errors.New("no redis-server")

// stoppedTurn measures one way, with the time-outs of the store and of Envoy.
func stoppedTurn(s settings, timeout, deadline time.Duration, stop func(*measure.Server) error) (measure.Numbers, error) {
	var ends ends
	defer ends.all()
	server, err := measure.StartRedis()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRedis, err)
	}
	ends.add(server.Stop)
	service, err := s.tools.serveGRPC(&ends, "envoy.yaml", envoyRules, "--store", "redis://"+server.Addr, "--store-timeout", timeout.String())
	if err != nil {
		return nil, err
	}
	d, err := openDoor(&ends, "", 1, service)
	if err != nil {
		return nil, err
	}
	keys := measure.NewKeys(100_000)
	measure.Callers(d.allow, keys, envoyCallers, s.load/10) // warm
	var failed atomic.Int64
	call := func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if _, err := d.call(ctx, keys.At(uint32(i%keys.Len()))); err != nil {
			failed.Add(1)
		}
	}
	before := measure.Begin(envoyRate, s.load/4, call)
	if err := stop(server); err != nil {
		return nil, err
	}
	after := measure.Begin(envoyRate, s.load, call)
	if before.Len() == 0 || after.Len() == 0 {
		return nil, errors.New("no calls")
	}
	return measure.Numbers{
		float64(before.At(0.999)), float64(after.At(0.5)), float64(after.At(0.999)), float64(after.Max()),
		float64(failed.Load()),
	}, nil
}
