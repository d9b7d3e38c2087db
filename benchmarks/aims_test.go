package main

import (
	"slices"
	"strings"
	"testing"
)

// aimsOf returns the lines of the table of aims that begin with one of some measures.
func aimsOf(f found, measures ...string) (lines []string) {
	for line := range strings.Lines(settings{found: f}.render("aims", nil)) {
		if slices.ContainsFunc(measures, func(m string) bool { return strings.HasPrefix(line, "| "+m+" |") }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Aims over Redis print the rows that they judge, and their baseline. One kind that is too slow
// misses the aim of all. A row that was not measured reaches nothing.
func TestRedisAims(t *testing.T) {
	t.Parallel()
	f := found{}
	rate := func(section, row string, n64, n256 float64) {
		f[cell{section, row, "64"}], f[cell{section, row, "256"}] = n64, n256
	}
	rate("batched", "raw: INCR, rueidis", 100, 100)
	rate("batched", "raw: baseline, a script for 16 keys", 100, 200)
	rate("batched", "raw: baseline, batched", 200, 200)
	rate("batched", "raw: baseline, batched, three keys each", 80, 80)
	rate("batched", "raw: baseline, batched, with deadlines and answers", 70, 150)
	rate("batched", "weir sliding", 90, 178)
	rate("batched", "weir bucket", 95, 190)
	rate("batched", "weir fixed", 120, 190)
	rate("batched", "weir sliding, three rules", 60, 60)
	rate("unbatched", "raw: EVALSHA of one INCR, rueidis", 100, 100)
	rate("unbatched", "raw: baseline, one key with a deadline", 60, 60)
	rate("unbatched", "weir sliding", 74, 74)
	rate("unbatched", "weir bucket", 65, 65)
	rate("unbatched", "weir fixed", 65, 65)
	measures := []string{
		"over Redis, 64 callers: decisions a second in a sliding window, a bucket, a fixed window", "the same, 256 callers",
		"the same, three rules, in time of one", "over Redis, 64 callers without batching, the three kinds",
	}
	compare(t, aimsOf(f, measures...), []string{
		"| " + measures[0] + " | ≥ 0.9 × INCR | 0.90; 0.95; 1.20 ×; the baseline 0.70 × | reached |",
		"| " + measures[1] + " | ≥ 0.9 × a script for 16 keys | 0.89; 0.95; 0.95 ×; the baseline 0.75 × | missed |",
		"| " + measures[2] + " | ≤ 1.6 × | 1.50 ×; the baseline 2.50 × | reached |",
		"| " + measures[3] + " | ≥ 0.75; 0.65; 0.65 × EVALSHA of INCR | 0.74; 0.65; 0.65 ×; the baseline 0.60 × | missed |",
	})
}

func TestAimsNotMeasured(t *testing.T) {
	t.Parallel()
	text := settings{found: found{}}.render("aims", nil)
	if strings.Contains(text, "NaN") || strings.Contains(text, "| reached |\n") || strings.Contains(text, "missed") || strings.Count(text, "– | not measured |") != 43 {
		t.Errorf("got %s", text)
	}
}

// A pause in every turn misses the aim. A pause in some turns is shown.
func TestPauses(t *testing.T) {
	t.Parallel()
	const measure = "growing to ten million keys: calls over 1 ms in which the thread ran, in the turn with fewest"
	for _, c := range []struct {
		bucket, sliding [2]float64 // the fewest and the most busy calls of a turn
		want            string
	}{
		{[2]float64{0, 0}, [2]float64{0, 2}, "0; at most 2 in a turn, reads of memory 4 | reached"},
		{[2]float64{0, 3}, [2]float64{1, 1}, "1; at most 3 in a turn, reads of memory 4 | missed"},
	} {
		f := found{{"growth", readsRow, "most busy"}: 4}
		f[cell{"growth", "weir bucket", "busy"}], f[cell{"growth", "weir bucket", "most busy"}] = c.bucket[0], c.bucket[1]
		f[cell{"growth", "weir sliding, exact", "busy"}], f[cell{"growth", "weir sliding, exact", "most busy"}] = c.sliding[0], c.sliding[1]
		compare(t, aimsOf(f, measure), []string{"| " + measure + " | 0 | " + c.want + " |"})
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns []float64
		want  string
	}{{[]float64{0, 0, 0}, "0"}, {[]float64{3, 0, 1}, "0 to 3"}, {[]float64{256, 257, 256}, "256 to 257"}} {
		if got := span(c.turns, number, " to ", ""); got != c.want {
			t.Errorf("%v: got %q, want %q", c.turns, got, c.want)
		}
	}
	if got := span([]float64{0.46, 0}, share, "–", " %"); got != "0–46 %" {
		t.Errorf("got %q, want 0–46 %%", got)
	}
}
