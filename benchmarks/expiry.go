package main

import (
	"fmt"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
	"github.com/weirhq/weir/benchmarks/report"
)

// expiry measures what is left of a table whose keys have all expired. It takes
// one round, because most of the time is waiting.
func expiry(s settings) (*report.Table, error) {
	keys, others := measure.NewKeys(s.keys), measure.NewKeys(s.keys+1000)
	few := others.From(s.keys)
	t := &report.Table{
		Title: "All keys expired",
		Text: fmt.Sprintf("%s keys in a window of %v, which then passes. Light traffic on a thousand other keys follows for %v, with at most one call every 10 µs: "+
			"as many calls as in a minute at 10,000 a second. "+
			"*left*: share of the table's memory. One round.", report.Number(float64(s.keys)), s.window, s.light),
		Head: []string{"", "left", "slowest call meanwhile"},
	}
	idle := measure.Expire(func(string) bool { return true }, measure.NewKeys(1), few, 0, s.light)
	t.Row("raw: an empty call", "–", report.Time(float64(idle.Slow)))
	for _, p := range peer.Million() {
		if p.Kind == peer.Cost {
			continue
		}
		fmt.Fprintf(s.progress, "          %s\n", p.Name)
		l, err := start(p, peer.Config{Quota: 100, Window: s.window})
		if err != nil {
			return nil, err
		}
		e := measure.Expire(l.Allow, keys, few, s.window, s.light)
		l.Stop()
		s.found.keep("expiry", p.Name, []float64{e.Left, float64(e.Slow)}, "left", "slowest")
		t.Row(p.Name, report.Share(e.Left), report.Time(float64(e.Slow)))
	}
	return t, nil
}
