package main

import (
	"strings"
	"testing"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns []uint64
		want  string
	}{{[]uint64{0, 0, 0}, "0"}, {[]uint64{3, 0, 1}, "0 to 3"}, {[]uint64{256, 257, 256}, "256 to 257"}} {
		if got := span(c.turns); got != c.want {
			t.Errorf("%v: got %q, want %q", c.turns, got, c.want)
		}
	}
}

// A pause in every turn misses the aim. A pause in some turns is shown.
func TestPauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bucket, sliding [2]float64 // the fewest and the most busy calls of a turn
		want            string
		reached         bool
	}{
		{[2]float64{0, 0}, [2]float64{0, 2}, "0; at most 2 in a turn, reads of memory 4", true},
		{[2]float64{0, 3}, [2]float64{1, 1}, "1; at most 3 in a turn, reads of memory 4", false},
	} {
		f := found{}
		f.keep("growth", bucketRow, c.bucket[:], "busy", "most busy")
		f.keep("growth", exactRow, c.sliding[:], "busy", "most busy")
		f.keep("growth", readsRow, []float64{4}, "most busy")
		if got, reached := pauses("busy", "most busy")(f); got != c.want || reached != c.reached {
			t.Errorf("got %q, %v, want %q, %v", got, reached, c.want, c.reached)
		}
	}
	if got, reached := pauses("busy", "most busy")(found{}); reached || !strings.Contains(got, "–") {
		t.Errorf("not measured: got %q, %v, want no number", got, reached)
	}
}
