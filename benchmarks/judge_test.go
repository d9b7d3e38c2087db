package main

import (
	"testing"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/benchmarks/internal/peer"
)

// A limiter on the real clock gets the trace faster.
func TestJudgeFaster(t *testing.T) {
	t.Parallel()
	for _, p := range peer.Accuracy() {
		if p.Clock {
			continue
		}
		trace := measure.Traces(5000, traceQuota, traceWindow)[0]
		o := judge(p, trace)
		if o.Over() < 0.5 || o.Over() > 2.1 {
			t.Errorf("%s: got %v quotas in a window, want 0.5 to 2.1", p.Name, o.Over())
		}
	}
}

// weir's sliding window never admits more than the quota, and a fixed window
// admits twice the quota under the aimed trace. Sentinel has one clock for the
// process, so this test is not parallel.
func TestJudge(t *testing.T) {
	traces := measure.Traces(30_000, traceQuota, traceWindow)
	for _, p := range peer.Accuracy() {
		for _, trace := range traces {
			if !p.Clock {
				continue
			}
			o := judge(p, trace)
			switch p.Name {
			case "weir sliding, precision 1000":
				if o.WronglyDenied() != 0 || o.Admitted() != 1 {
					t.Errorf("%s, %s: got %v wrongly denied and %v admitted, want 0 and 1",
						p.Name, trace.Name, o.WronglyDenied(), o.Admitted())
				}
				fallthrough
			case "weir sliding, precision 100 (default)", "weir cells":
				if o.Over() > 1 {
					t.Errorf("%s, %s: got %v quotas in a window, want at most 1", p.Name, trace.Name, o.Over())
				}
			case "weir fixed", "weir bucket":
				if trace.Name == "aimed" && o.Over() < 1.8 {
					t.Errorf("%s, %s: got %v quotas in a window, want nearly 2", p.Name, trace.Name, o.Over())
				}
			}
		}
	}
}
