package measure_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
	"github.com/weirhq/weir/benchmarks/peer"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h, other measure.Histogram
	for i := range 1000 {
		h.Add(time.Duration(i+1) * time.Microsecond)
	}
	other.Add(5 * time.Millisecond)
	h.Merge(&other)
	for _, c := range []struct {
		share float64
		want  time.Duration
	}{{0.5, 501 * time.Microsecond}, {0.99, 991 * time.Microsecond}, {1, 5 * time.Millisecond}} {
		got := h.At(c.share)
		if got < c.want || got > c.want*33/32+1 {
			t.Errorf("at %v: got %v, want %v to a 32nd more", c.share, got, c.want)
		}
	}
	if h.Max() != 5*time.Millisecond || h.Slow() != 1 || h.Len() != 1001 {
		t.Errorf("got max %v, %d slow of %d, want 5ms, 1 of 1001", h.Max(), h.Slow(), h.Len())
	}
}

func TestHistogramIsExactBelow64(t *testing.T) {
	t.Parallel()
	for n := range time.Duration(64) {
		var h measure.Histogram
		h.Add(n)
		h.Add(time.Second)
		if got := h.At(0.5); got != n {
			t.Errorf("got %d, want %d", got, n)
		}
	}
}

func TestOracle(t *testing.T) {
	t.Parallel()
	o := measure.NewOracle(2, 10)
	for _, hit := range []struct {
		at       time.Duration
		admitted bool
	}{{0, true}, {1, false}, {5, true}, {9, false}, {10, true}, {11, true}, {12, false}} {
		o.See(hit.at, hit.admitted)
	}
	// The window (1, 11] has 5, 10 and 11; at 1 the window had only the hit of 0.
	if o.Over() != 1.5 || math.Abs(o.WronglyDenied()-1.0/7) > 1e-9 {
		t.Errorf("got %v over and %v wrongly denied, want 1.5 and 1/7", o.Over(), o.WronglyDenied())
	}
	// An exact limiter admits the hits of 0, 1, 10 and 11.
	if o.Admitted() != 1 {
		t.Errorf("got %v of what is right admitted, want 1", o.Admitted())
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	for _, trace := range measure.Traces(10_000, 1000, 10*time.Second) {
		if len(trace.At) != 10_000 {
			t.Errorf("%s: got %d arrivals, want 10000", trace.Name, len(trace.At))
		}
		for i := 1; i < len(trace.At); i++ {
			if trace.At[i] < trace.At[i-1] {
				t.Fatalf("%s: arrival %d is before the one before it", trace.Name, i)
			}
		}
	}
}

// A limiter on the real clock gets the trace faster.
func TestJudgeFaster(t *testing.T) {
	t.Parallel()
	for _, p := range peer.Accuracy() {
		if p.Clock {
			continue
		}
		trace := measure.Traces(5000, 1000, 10*time.Second)[0]
		o, err := measure.Judge(p, trace, 1000, 10*time.Second, 100)
		if err != nil {
			t.Fatal(err)
		}
		if o.Over() < 0.5 || o.Over() > 2.1 {
			t.Errorf("%s: got %v quotas in a window, want 0.5 to 2.1", p.Name, o.Over())
		}
	}
}

// weir's sliding window never admits more than the quota, and a fixed window
// admits twice the quota under the aimed trace. Sentinel has one clock for the
// process, so this test is not parallel.
func TestJudge(t *testing.T) {
	traces := measure.Traces(30_000, 1000, 10*time.Second)
	for _, p := range peer.Accuracy() {
		for _, trace := range traces {
			if !p.Clock {
				continue
			}
			o, err := measure.Judge(p, trace, 1000, 10*time.Second, 1)
			if err != nil {
				t.Fatal(err)
			}
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

func TestMedians(t *testing.T) {
	t.Parallel()
	turn := 0.0
	got := measure.Rounds(3, []func() measure.Numbers{
		func() measure.Numbers { turn++; return measure.Numbers{turn, measure.None()} },
	})
	if got[0][0] != 2 || !math.IsNaN(got[0][1]) {
		t.Errorf("got %v, want 2 and none", got[0])
	}
}

// A slow call that works counts as busy; one that waits for the machine does not.
func TestGrowSeesBusyCalls(t *testing.T) {
	t.Parallel()
	calls := 0
	g := measure.Grow(measure.Subject{
		Allow: func(string) bool {
			if calls++; calls == 100 {
				for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
				}
			}
			return true
		},
		Expire: func() {}, Len: func() int { return 1 }, Close: func() {},
	}, measure.NewKeys(1000))
	if g.Grow.Len() != 1000 || g.Shrink.Len() != 500 {
		t.Errorf("got %d and %d calls, want 1000 and 500", g.Grow.Len(), g.Shrink.Len())
	}
	if g.Grow.Max() < 50*time.Millisecond || g.Grow.Busy == 0 {
		t.Errorf("got %v for the slowest call and %d busy ones, want 50ms and 1", g.Grow.Max(), g.Grow.Busy)
	}
}
