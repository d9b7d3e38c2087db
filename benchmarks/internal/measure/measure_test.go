package measure_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

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
	grow, shrink, left := measure.Grow(measure.Subject{
		Times: 1,
		Allow: func(string) bool {
			if calls++; calls == 100 {
				// The count takes milliseconds of work, also where others have most of the 50 ms.
				for start, n := time.Now(), 0; n < 20_000_000 || time.Since(start) < 50*time.Millisecond; n++ {
				}
			}
			return true
		},
		Expire: func() {}, Len: func() int { return 1 }, Close: func() {},
	}, measure.NewKeys(1000))
	if grow.TotalCount() != 1000 || shrink.TotalCount() != 500 || left != 1 {
		t.Errorf("got %d and %d calls and %v left, want 1000, 500 and all", grow.TotalCount(), shrink.TotalCount(), left)
	}
	if grow.Max() < int64(49*time.Millisecond) || grow.Busy == 0 || grow.Slow < grow.Busy {
		t.Errorf("got %d ns for the slowest call, %v slow and %v busy ones, want 50ms and 1", grow.Max(), grow.Slow, grow.Busy)
	}
}

// An error ends what Try runs. Other panics go on.
func TestTry(t *testing.T) {
	t.Parallel()
	want := errors.New("no")
	if err := measure.Try(func() { measure.Check(want); t.Error("got further") }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	defer func() {
		if recover() != "other" {
			t.Error("got no panic")
		}
	}()
	_ = measure.Try(func() { panic("other") })
}
