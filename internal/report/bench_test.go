package report_test

import (
	"strconv"
	"testing"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
)

// What a decision in an outage costs in addition.
func BenchmarkAdd(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		b.Run("keys="+strconv.Itoa(keys), func(b *testing.B) {
			f := newFar()
			f.gone("circuit-open")
			r := report.New(f, nil)
			defer r.Close()
			ops := make([]store.Op, keys)
			for i := range ops {
				ops[i] = *of(hourly, strconv.Itoa(i), "")
			}
			b.ReportAllocs()
			at := 0
			for b.Loop() {
				r.Add(&ops[at%keys], hourly, 1)
				at++
			}
		})
	}
}

// What a decision that meets no outage costs in addition.
func BenchmarkAnswered(b *testing.B) {
	r := report.New(newFar(), nil)
	defer r.Close()
	for b.Loop() {
		r.Answered()
	}
}
