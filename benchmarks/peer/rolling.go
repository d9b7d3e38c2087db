package peer

import (
	"sync/atomic"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	stat "github.com/alibaba/sentinel-golang/core/stat/base"
	"github.com/weirhq/weir/rolling"
)

// Rolling is a window of statistics with 10 buckets over a second.
type Rolling struct {
	Name, Module string
	Reference    bool
	// New makes a window and returns functions that add 1 and return the sum.
	New func() (add func(), sum func() int64)
}

// Windows returns the windows of statistics, after the raw cost that bounds them.
func Windows() []Rolling {
	return []Rolling{{
		Name: "raw: time.Since + atomic add; atomic load", Reference: true,
		New: func() (func(), func() int64) {
			start, n, sink := time.Now(), new(atomic.Int64), new(atomic.Int64)
			return func() {
					if time.Since(start) >= 0 {
						n.Add(1)
					}
				}, func() int64 {
					if time.Since(start) < 0 {
						sink.Add(1)
					}
					return n.Load()
				}
		},
	}, {
		// What the count, the sum, the least and the greatest value of one bucket need.
		Name: "floor: time.Since + two atomic adds + two loads; two loads",
		New: func() (func(), func() int64) {
			start, c := time.Now(), new(struct{ count, sum, least, most atomic.Int64 })
			return func() {
					if time.Since(start) < 0 {
						return
					}
					c.sum.Add(1)
					if c.least.Load() > 1 || c.most.Load() < 0 {
						return
					}
					c.count.Add(1)
				}, func() int64 {
					if time.Since(start) < 0 {
						return 0
					}
					return max(c.count.Load(), c.sum.Load()) // equal: each hit adds 1
				}
		},
	}, {
		Name: "weir rolling.Window",
		New: func() (func(), func() int64) {
			w := rolling.MustNew[int64](buckets, time.Second)
			return func() { w.Add(1) }, func() int64 { return w.Sum() }
		},
	}, {
		Name: "go-zero RollingWindow: Add; Reduce", Module: goZeroModule,
		New: func() (func(), func() int64) {
			w := newGoZeroWindow(time.Second)
			return func() { w.Add(1) }, func() int64 { return goZeroSum(w) }
		},
	}, {
		Name: "Sentinel LeapArray: AddCount; Count", Module: sentinelModule,
		New: func() (func(), func() int64) {
			w := stat.NewBucketLeapArray(buckets, 1000)
			return func() { w.AddCount(base.MetricEventPass, 1) },
				func() int64 { return w.Count(base.MetricEventPass) }
		},
	}}
}
