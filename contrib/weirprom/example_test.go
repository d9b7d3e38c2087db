package weirprom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/contrib/weirprom"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/weirtest"
)

// printCounters prints the counters of a registry, in the order of their names.
func printCounters(r prometheus.Gatherer) {
	families, err := r.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter == nil {
				fmt.Println(f.GetName(), m.GetHistogram().GetSampleCount())
				continue
			}
			fmt.Print(f.GetName())
			for _, l := range m.Label {
				fmt.Printf(" %s=%s", l.GetName(), l.GetValue())
			}
			fmt.Println("", m.Counter.GetValue())
		}
	}
}

// Of three posts two are admitted, one while the store is unavailable.
func Example() {
	observer, registry := weirprom.New(), prometheus.NewRegistry()
	registry.MustRegister(observer)

	s := weirtest.NewStore()
	posts := weir.MustLimiter(weir.Sliding(1, time.Minute), weir.WithName("posts"), weir.WithObserver(observer),
		weir.WithStore(s), weir.WithOutage(rule.OutageAllow))
	defer posts.Close()
	for i := range 3 {
		if i == 2 {
			s.Fail(errors.New("connection refused"))
		}
		if _, err := posts.Allow(context.Background(), "ann"); err != nil {
			fmt.Println(err)
		}
	}
	_, _ = posts.AllowN(context.Background(), "ann", -1)
	printCounters(registry)
	// Output:
	// weir_decision_duration_seconds 3
	// weir_decisions_degraded_total 1
	// weir_decisions_total outcome=allow rule= verb=take 2
	// weir_decisions_total outcome=deny rule=posts verb=take 1
	// weir_outages_total reason=test 1
	// weir_requests_failed_total verb=take 1
}

// Two observers of one program are a mistake that the registry reports.
func TestTwice(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(weirprom.New())
	if err := registry.Register(weirprom.New()); err == nil {
		t.Error("got no error for a second observer")
	}
}
