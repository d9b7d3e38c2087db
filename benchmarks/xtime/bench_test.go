package xtime_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	xtime "golang.org/x/time/rate"

	weir "github.com/weirhq/weir/compat/rate"
)

// BenchmarkTurns measures both packages in short turns, one after the other, so that other
// load on the machine meets both. It reports the fastest turn of each, in nanoseconds a
// call, their ratio, and the median of the ratios of two turns that follow each other: the
// fastest turns of two goroutines can be those in which they had one core.
func BenchmarkTurns(b *testing.B) {
	for _, test := range []struct {
		name        string
		weir, xtime func() (call func(n int))
	}{
		{"Allow/allowed", loop(newWeirBig, (*weir.Limiter).Allow), loop(newXTimeBig, (*xtime.Limiter).Allow)},
		{"Allow/denied", loop(newWeirSmall, (*weir.Limiter).Allow), loop(newXTimeSmall, (*xtime.Limiter).Allow)},
		{"Wait", loop(newWeirBig, func(l *weir.Limiter) bool { return l.Wait(b.Context()) == nil }), loop(newXTimeBig, func(l *xtime.Limiter) bool { return l.Wait(b.Context()) == nil })},
		{"Reserve", loop(newWeirBig, func(l *weir.Limiter) bool { return l.Reserve().OK() }), loop(newXTimeBig, func(l *xtime.Limiter) bool { return l.Reserve().OK() })},
	} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", test.name, goroutines), func(b *testing.B) {
				const calls = 100_000
				turn := func(call func(int)) float64 {
					var wg sync.WaitGroup
					began := time.Now()
					for range goroutines {
						wg.Go(func() { call(calls) })
					}
					wg.Wait()
					return float64(time.Since(began).Nanoseconds()) / float64(calls*goroutines)
				}
				var weir, xtime, ratio []float64
				for b.Loop() {
					w, x := turn(test.weir()), turn(test.xtime())
					weir, xtime, ratio = append(weir, w), append(xtime, x), append(ratio, w/x)
				}
				slices.Sort(ratio)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(slices.Min(weir), "weir-ns")
				b.ReportMetric(slices.Min(xtime), "xtime-ns")
				b.ReportMetric(slices.Min(weir)/slices.Min(xtime), "ratio")
				b.ReportMetric(ratio[len(ratio)/2], "median-ratio")
			})
		}
	}
}

func newWeirBig() *weir.Limiter     { return weir.NewLimiter(1e9, 1e9) }
func newXTimeBig() *xtime.Limiter   { return xtime.NewLimiter(1e9, 1e9) }
func newWeirSmall() *weir.Limiter   { return weir.NewLimiter(1e-3, 1) }
func newXTimeSmall() *xtime.Limiter { return xtime.NewLimiter(1e-3, 1) }

// loop returns a function that makes a limiter and returns a loop of calls on it.
func loop[L any](create func() L, call func(L) bool) func() func(int) {
	return func() func(int) {
		l := create()
		return func(n int) {
			for range n {
				call(l)
			}
		}
	}
}
