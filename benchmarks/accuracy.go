package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// The limit that the traces are played against, and the factor by which they are
// played faster to a limiter that needs the real clock.
const (
	traceQuota  = 1000
	traceWindow = 10 * time.Second
	traceScale  = 100
)

// accuracy compares the answers of limiters with an exact log.
func accuracy(s settings) (*report.Table, error) {
	peers := peer.Accuracy()
	traces := measure.Traces(s.arrivals, traceQuota, traceWindow)
	oracles := make([][]*measure.Oracle, len(peers))
	for i := range peers {
		oracles[i] = make([]*measure.Oracle, len(traces))
	}
	for j, trace := range traces {
		if err := playAll(peers, trace, func(i int, o *measure.Oracle) { oracles[i][j] = o }); err != nil {
			return nil, err
		}
	}

	t := &report.Table{
		Title: "Accuracy",
		Text: fmt.Sprintf("%s arrivals, %s per %v, compared with an exact log. *Over*: the most hits admitted in any %[3]v, as a multiple of the quota; 1 is right. "+
			"*Admitted*: all admitted hits, as a share of those that an exact limiter would have admitted; the lowest and the highest over the traces. "+
			"*Wrongly denied*: share of all requests that were denied although fewer hits than the quota had been admitted. If many callers retry, "+
			"a limiter that admits one hit too few for a moment denies many requests. *aimed*: an idle limiter gets its whole quota in one burst, "+
			"each time later in its window, then a stream, and a last burst just before the first burst leaves the window.",
			report.Number(float64(s.arrivals)), report.Number(traceQuota), traceWindow),
		Head:  []string{""},
		Notes: []string{fmt.Sprintf("*: needs the real clock, so the trace was played %d times as fast, against a window of %v; the machine's timing accounts for a few hits.", traceScale, traceWindow/traceScale)},
	}
	for _, p := range peer.Hot() {
		if p.NoTrace != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("Left out: %s, because %s.", p.Name, p.NoTrace))
		}
	}
	for _, trace := range traces {
		t.Head = append(t.Head, "over, "+trace.Name)
	}
	t.Head = append(t.Head, "admitted", "wrongly denied")
	chart := report.Chart{
		Title: "The most hits admitted in any window, as a multiple of the quota, over four traces (1 is right)", Mark: 1,
	}
	for i, p := range peers {
		name := p.Name
		if !p.Clock {
			name += " *"
		}
		var cells []string
		worst := 0.0
		var admitted, wrong []float64
		for _, o := range oracles[i] {
			worst = max(worst, o.Over())
			admitted, wrong = append(admitted, o.Admitted()), append(wrong, o.WronglyDenied())
			cells = append(cells, fmt.Sprintf("%.3f", o.Over()))
		}
		t.Row(name, append(cells, spread(admitted), spread(wrong))...)
		s.found.keep("accuracy", p.Name, []float64{worst}, "over")
		chart.Bars = append(chart.Bars, bar(p, worst, fmt.Sprintf("%.3f", worst)))
	}
	var err error
	t.Chart, err = s.draw("accuracy.svg", chart)
	return t, err
}

// spread returns the lowest and the highest of some shares.
func spread(shares []float64) string {
	least, most := report.Share(slices.Min(shares)), report.Share(slices.Max(shares))
	if least == most {
		return least
	}
	return strings.TrimSuffix(least, " %") + "–" + most
}

// playAll plays a trace to all peers: first, one by one, to those with a settable
// clock; then to the others together, because they wait most of the time.
func playAll(peers []peer.Peer, trace measure.Trace, done func(i int, o *measure.Oracle)) error {
	errs := make([]error, len(peers))
	play := func(i int) {
		o, err := measure.Judge(peers[i], trace, traceQuota, traceWindow, traceScale)
		errs[i] = err
		done(i, o)
	}
	var waiting sync.WaitGroup
	for i, p := range peers {
		if p.Clock {
			play(i)
		}
	}
	for i, p := range peers {
		if !p.Clock {
			waiting.Go(func() { play(i) })
		}
	}
	waiting.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", peers[i].Name, err)
		}
	}
	return nil
}
