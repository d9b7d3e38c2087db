package main

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// The audit agrees with a count of each window, one after the other.
func TestMost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		hits := make([]admission, random.IntN(12))
		for i := range hits {
			from := random.Int64N(30) + 1
			hits[i] = admission{from, from + random.Int64N(4)*random.Int64N(2)}
		}
		want := 0
		for end := range int64(50) {
			n := 0
			for _, h := range hits {
				if h.from > end-10 && h.to <= end {
					n++
				}
			}
			want = max(want, n)
		}
		if got := most(hits, 10); got != want {
			t.Fatalf("most(%v) = %d, want %d", hits, got, want)
		}
	}
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	j.admit(3, 4, 2)
	j.counts.hits.Add(1) // killed before it was written
	again, err := openJournal(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.read(); len(got) != 2 || got[1] != (admission{3, 4}) {
		t.Errorf("read %v", got)
	}
	for _, j := range []*journal{j, again} {
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}
}
