package main

import (
	"testing"
)

// Aims over Redis print the rows that they judge, and their floor. One kind that is too slow
// misses the aim of all. A row that was not measured reaches nothing.
func TestRedisAims(t *testing.T) {
	t.Parallel()
	f := found{}
	rate := func(section, row string, n64, n256 float64) { f.keep(section, row, []float64{n64, n256}, "64", "256") }
	rate("company", incrRow, 100, 100)
	rate("company", sixteenRow, 100, 200)
	rate("company", sharedRow, 200, 200)
	rate("company", sharedThree, 80, 80)
	rate("company", contractRow, 70, 150)
	rate("company", slidingRow, 90, 178)
	rate("company", bucketRow, 95, 190)
	rate("company", fixedRow, 120, 190)
	rate("company", redisThreeRow, 60, 60)
	rate("apart", evalshaRow, 100, 100)
	rate("apart", aloneRow, 60, 60)
	rate("apart", slidingRow, 74, 74)
	rate("apart", bucketRow, 65, 65)
	rate("apart", fixedRow, 65, 65)
	want := []struct {
		text   string
		enough bool
	}{
		{"0.90; 0.95; 1.20 ×; the floor 0.70 ×", true},
		{"0.89; 0.95; 0.95 ×; the floor 0.75 ×", false},
		{"1.50 ×; the floor 2.50 ×", true},
		{"0.74; 0.65; 0.65 ×; the floor 0.60 ×", false},
	}
	for i, a := range redisAims() {
		if text, enough := a.reached(f); text != want[i].text || enough != want[i].enough {
			t.Errorf("%s: got %s, %t; want %s, %t", a.measure, text, enough, want[i].text, want[i].enough)
		}
		if text, enough := a.reached(found{}); enough {
			t.Errorf("%s: got %s, which is enough, without numbers", a.measure, text)
		}
	}
}
