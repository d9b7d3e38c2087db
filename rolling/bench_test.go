package rolling_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/rolling"
)

// parallel runs f on as many cores as -cpu sets.
func parallel(b *testing.B, name string, f func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				f()
			}
		})
	})
}

// BenchmarkAdd measures one hit. The row "raw" is the minimum: a clock and an atomic
// addition to a number that all cores share.
func BenchmarkAdd(b *testing.B) {
	born := time.Now()
	var sum, late atomic.Int64
	parallel(b, "raw", func() {
		if time.Since(born) < 0 {
			late.Add(1)
		}
		sum.Add(3)
	})
	parallel(b, "raw-time.Now", func() {
		if time.Now().Before(born) {
			late.Add(1)
		}
		sum.Add(3)
	})
	ints := rolling.MustNew[int64](10, time.Second)
	parallel(b, "int64", func() { ints.Add(3) })
	ones := rolling.MustNew[int64](10, time.Second)
	parallel(b, "int64=1", func() { ones.Add(1) })
	floats := rolling.MustNew[float64](10, time.Second)
	parallel(b, "float64", func() { floats.Add(3) })
	short := rolling.MustNew[int64](10, 10*time.Microsecond)
	parallel(b, "bucket=1µs", func() { short.Add(3) })
}

// BenchmarkSum reads ten buckets with hits. The row "raw" is a clock and ten atomic
// loads.
func BenchmarkSum(b *testing.B) {
	born := time.Now()
	var cells [10]atomic.Int64
	var odd atomic.Int64
	parallel(b, "raw", func() {
		var sum int64
		for i := range cells {
			sum += cells[i].Load()
		}
		if int64(time.Since(born))+sum < 0 {
			odd.Add(1)
		}
	})
	w := rolling.MustNew[int64](10, 10*time.Hour)
	for hour := range 10 {
		w.AddAt(time.Duration(hour)*time.Hour, 3)
	}
	parallel(b, "sum", func() {
		if w.Sum() != 30 {
			odd.Add(1)
		}
	})
	parallel(b, "rate", func() {
		if w.Rate() < 0 {
			odd.Add(1)
		}
	})
	parallel(b, "reduce", func() {
		w.Reduce(func(bucket rolling.Bucket[int64]) {
			if bucket.Sum != 3 {
				odd.Add(1)
			}
		})
	})
	if odd.Load() > 0 {
		b.Errorf("%d readings are wrong", odd.Load())
	}
}
