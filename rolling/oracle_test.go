package rolling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

// hit is a hit in the oracle: the number of its bucket since the creation of the
// window, and its value.
type hit[T rolling.Number] struct {
	bucket int64
	value  T
}

// oracle is a window written from the definition: a list of hits.
type oracle[T rolling.Number] struct {
	width int64
	hits  []hit[T]
}

// latest returns the newest bucket. Time never goes back for a window.
func (o *oracle[T]) latest() int64 {
	latest := int64(0)
	for _, h := range o.hits {
		latest = max(latest, h.bucket)
	}
	return latest
}

func (o *oracle[T]) add(now time.Duration, v T) {
	o.hits = append(o.hits, hit[T]{max(int64(now)/o.width, o.latest()), v})
}

// steps returns the sums of a view, oldest first.
func (o *oracle[T]) steps(now time.Duration, steps, buckets int, complete bool) []rolling.Bucket[T] {
	running := max(int64(now)/o.width, o.latest()) / int64(buckets)
	var row []rolling.Bucket[T]
	for step := running - int64(steps) + 1; step <= running; step++ {
		if step == running && complete {
			break
		}
		var b rolling.Bucket[T]
		for _, h := range o.hits {
			if h.bucket >= step*int64(buckets) && h.bucket < (step+1)*int64(buckets) {
				b = plus(b, rolling.Bucket[T]{Count: 1, Sum: h.value, Min: h.value, Max: h.value})
			}
		}
		row = append(row, b)
	}
	return row
}

// plus returns a and b as one bucket.
func plus[T rolling.Number](a, b rolling.Bucket[T]) rolling.Bucket[T] {
	switch {
	case a.Count == 0:
		return b
	case b.Count == 0:
		return a
	}
	return rolling.Bucket[T]{
		Count: a.Count + b.Count, Sum: a.Sum + b.Sum, Min: min(a.Min, b.Min), Max: max(a.Max, b.Max),
	}
}

// TestOracle compares all reads with the oracle, on random traffic with pauses,
// clocks that disagree, and views of every shape.
func TestOracle(t *testing.T) {
	t.Parallel()
	t.Run("int", func(t *testing.T) { against(t, func(r *rand.Rand) int { return int(r.Uint64()) }) })
	t.Run("ones and others", func(t *testing.T) { against(t, func(r *rand.Rand) int { return max(r.IntN(7)-3, 1-2*r.IntN(2)) }) })
	t.Run("ones that wrap", func(t *testing.T) { against(t, func(r *rand.Rand) int8 { return 1 + 126*int8(r.IntN(2)) }) })
	t.Run("int8 wraps", func(t *testing.T) { against(t, func(r *rand.Rand) int8 { return int8(r.Int64()) }) })
	t.Run("uint16 wraps", func(t *testing.T) { against(t, func(r *rand.Rand) uint16 { return uint16(r.Int64()) }) })
	t.Run("uint64", func(t *testing.T) { against(t, (*rand.Rand).Uint64) })
	t.Run("duration", func(t *testing.T) {
		against(t, func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(time.Hour))) })
	})
	// Eighths, so that sums are exact in any order.
	t.Run("float32", func(t *testing.T) { against(t, func(r *rand.Rand) float32 { return float32(r.IntN(200)-100) / 8 }) })
	t.Run("float64", func(t *testing.T) { against(t, func(r *rand.Rand) float64 { return float64(r.IntN(200)-100) / 8 }) })
}

func against[T rolling.Number](t *testing.T, value func(*rand.Rand) T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		n, width := 1+r.IntN(12), 1+r.Int64N(1000)
		w := rolling.MustNew[T](n, time.Duration(int64(n)*width))
		o := oracle[T]{width: width}
		var clock int64
		for range 150 {
			clock += r.Int64N(width)
			if r.IntN(20) == 0 {
				clock += r.Int64N(3 * int64(n) * width)
			}
			now := time.Duration(max(0, clock-r.Int64N(2*width)))
			if r.IntN(2) == 0 {
				v := value(r)
				w.AddAt(now, v)
				o.add(now, v)
			}
			buckets := 1 + r.IntN(n)
			steps := 1 + r.IntN(n/buckets)
			complete := r.IntN(3) == 0
			if err := agree(w, &o, now, steps, buckets, complete); err != nil {
				t.Fatalf("seed %d, %d buckets of %dns, %d steps of %d, complete %v: %v",
					seed, n, width, steps, buckets, complete, err)
			}
		}
	}
}

func agree[T rolling.Number](w *rolling.Window[T], o *oracle[T], now time.Duration, steps, buckets int, complete bool) error {
	view, err := w.View(steps, buckets)
	if err != nil {
		return err
	}
	if complete {
		view = view.Complete()
	}
	want := o.steps(now, steps, buckets, complete)
	var got []rolling.Bucket[T]
	var starts []time.Time
	view.ReduceAt(now, func(b rolling.Bucket[T]) {
		starts = append(starts, b.Start)
		b.Start = time.Time{}
		got = append(got, b)
	})
	if !slices.Equal(got, want) {
		return fmt.Errorf("at %d: got steps %v, want %v", now, got, want)
	}
	for i := 1; i < len(starts); i++ {
		if d := starts[i].Sub(starts[i-1]); int64(d) != int64(buckets)*o.width {
			return fmt.Errorf("at %d: got steps %dns apart, want %d", now, d, int64(buckets)*o.width)
		}
	}

	var all rolling.Bucket[T]
	for _, b := range want {
		all = plus(all, b)
	}
	total := view.TotalAt(now)
	total.Start = time.Time{}
	if total != all {
		return fmt.Errorf("at %d: got total %v, want %v", now, total, all)
	}
	if sum, count := view.SumAt(now), view.CountAt(now); sum != all.Sum || count != all.Count {
		return fmt.Errorf("at %d: got %d hits of %v, want %d of %v", now, count, sum, all.Count, all.Sum)
	}
	return nil
}
