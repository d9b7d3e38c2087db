package main

import (
	"fmt"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// start makes a limiter of a peer. An error names the peer.
func start(p peer.Peer, c peer.Config) (peer.Limiter, error) {
	l, err := p.New(c)
	if err != nil {
		return l, fmt.Errorf("%s: %w", p.Name, err)
	}
	return l, nil
}

// started are the limiters of a section that keeps all of them until its end.
type started []peer.Limiter

func (s *started) start(p peer.Peer, c peer.Config) (peer.Limiter, error) {
	l, err := start(p, c)
	if err == nil {
		*s = append(*s, l)
	}
	return l, err
}

func (s *started) stop() {
	for _, l := range *s {
		l.Stop()
	}
}

// reference returns the number in a column that ratios refer to.
func reference(peers []peer.Peer, numbers []measure.Numbers, column int) float64 {
	for i, p := range peers {
		if p.Reference {
			return numbers[i][column]
		}
	}
	return measure.None()
}

// label returns a row's name, in bold if ratios refer to the row.
func label(p peer.Peer) string {
	if p.Reference {
		return report.Bold(p.Name)
	}
	return p.Name
}

// notes returns the settings of the peers that had a choice.
func notes(peers []peer.Peer) (list []string) {
	for _, p := range peers {
		if p.Note != "" {
			list = append(list, p.Name+": "+p.Note+".")
		}
	}
	return list
}

// bar returns a peer's bar in a chart.
func bar(p peer.Peer, value float64, text string) report.Bar {
	return report.Bar{Label: p.Name, Value: value, Text: text, Ours: p.IsOurs(), Raw: p.IsRaw()}
}
