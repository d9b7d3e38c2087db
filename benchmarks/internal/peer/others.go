package peer

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	stat "github.com/alibaba/sentinel-golang/core/stat/base"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/alibaba/sentinel-golang/util"
	"github.com/didip/tollbooth/v7"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	juju "github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"github.com/zeromicro/go-zero/core/collection"
	"github.com/zeromicro/go-zero/core/logx"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirhq/weir/benchmarks/internal/measure"
	"github.com/weirhq/weir/rolling"
)

// buckets is the number of buckets of windows with buckets.
const buckets = 10

// go-zero prints the usage of its process to standard output once a minute, and Sentinel logs to standard output.
func init() {
	logx.Disable()
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel + 1)
}

// inMemory returns the other limiters that count in memory. Those without keys are measured as they are, or one
// for each key in a sync.Map.
func inMemory() []Peer {
	return []Peer{
		{Name: "x/time/rate", Module: "golang.org/x/time", New: func(c Config) Limiter {
			l := timeBucket(c)
			return Limiter{Allow: func(string) bool { return l.Allow() }}
		}},
		{Name: "x/time/rate in a sync.Map", Module: "golang.org/x/time", Keys: true, Clock: true, New: func(c Config) Limiter {
			if c.Now != nil {
				return each(func(string) *rate.Limiter { return timeBucket(c) }, func(l *rate.Limiter) bool { return l.AllowN(c.Now(), 1) })
			}
			return each(func(string) *rate.Limiter { return timeBucket(c) }, (*rate.Limiter).Allow)
		}},
		{Name: "uber ratelimit, Take", Note: "makes callers wait instead of denying; at a rate that is never reached", Module: "go.uber.org/ratelimit", Kind: Flows, New: func(Config) Limiter {
			l := uber.New(1_000_000_000)
			return Limiter{Allow: func(string) bool { return !l.Take().IsZero() }}
		}},
		{Name: "sethvargo/go-limiter", Note: "sweeps once per window, and drops keys unused for a window", Module: "github.com/sethvargo/go-limiter", Keys: true, New: func(c Config) Limiter {
			ctx := context.Background()
			s := measure.Must(memorystore.New(&memorystore.Config{Tokens: uint64(c.Quota), Interval: c.Window, SweepInterval: c.Window, SweepMinTTL: c.Window}))
			return Limiter{Allow: func(key string) bool {
				_, _, _, ok, err := s.Take(ctx, key)
				return ok && err == nil
			}, Close: func() { _ = s.Close(ctx) }} // closing cannot fail
		}},
		{Name: "throttled, map", Module: "github.com/throttled/throttled/v2", Keys: true, Clock: true, New: throttledIn(0)},
		{Name: "throttled, LRU", Note: "for two million keys", Module: "github.com/throttled/throttled/v2", Keys: true, Clock: true, New: throttledIn(2_000_000)},
		{Name: "RussellLuo/slidingwindow", Module: "github.com/RussellLuo/slidingwindow", New: func(c Config) Limiter {
			l := russellLuo(c)
			return Limiter{Allow: func(string) bool { return l.Allow() }}
		}},
		{Name: "RussellLuo/slidingwindow in a sync.Map", Module: "github.com/RussellLuo/slidingwindow", Keys: true, Clock: true, New: func(c Config) Limiter {
			now := time.Now
			if c.Now != nil {
				now = c.Now
			}
			return each(func(string) *slidingwindow.Limiter { return russellLuo(c) }, func(l *slidingwindow.Limiter) bool { return l.AllowN(now(), 1) })
		}},
		{Name: "ulule/limiter", Note: "cleans up once per window, and every 30 seconds, its default", Module: "github.com/ulule/limiter/v3", Keys: true, New: func(c Config) Limiter {
			s := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: "u", CleanUpInterval: min(c.Window, limiter.DefaultCleanUpInterval)})
			return Limiter{Allow: ululeAllow(s, c)}
		}},
		{Name: "juju/ratelimit in a sync.Map", Module: "github.com/juju/ratelimit", Keys: true, Clock: true, New: func(c Config) Limiter {
			var clock juju.Clock // nil is the machine's clock
			if c.Now != nil {
				clock = readOnly(c.Now)
			}
			// NewBucketWithRate would search for these numbers with every bucket.
			quantum := max(1, c.Quota/int64(c.Window/time.Microsecond))
			bucket := func(string) *juju.Bucket {
				return juju.NewBucketWithQuantumAndClock(c.Window/time.Duration(c.Quota/quantum), c.Quota, quantum, clock)
			}
			return each(bucket, func(b *juju.Bucket) bool { return b.TakeAvailable(1) == 1 })
		}},
		{Name: "go-chi/httprate", Note: "OnLimit without headers, outside HTTP", Module: "github.com/go-chi/httprate", Keys: true, New: func(c Config) Limiter {
			l := httprate.NewRateLimiter(int(c.Quota), c.Window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
			r := measure.Must(http.NewRequest(http.MethodGet, "/", http.NoBody))
			return Limiter{Allow: func(key string) bool { return !l.OnLimit(nil, r, key) }}
		}},
		{Name: "didip/tollbooth", Note: "keys expire after a window; LimitReached, outside HTTP", Module: "github.com/didip/tollbooth/v7", Keys: true, New: func(c Config) Limiter {
			options := &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: c.Window}
			l := tollbooth.NewLimiter(float64(c.Quota)/c.Window.Seconds(), options).SetBurst(int(c.Quota))
			return Limiter{Allow: func(key string) bool { return !l.LimitReached(key) }}
		}},
		{Name: "failsafe-go bursty in a sync.Map", Module: "github.com/failsafe-go/failsafe-go", Keys: true, New: func(c Config) Limiter {
			bursty := func(string) ratelimiter.RateLimiter[any] { return ratelimiter.NewBursty[any](uint(c.Quota), c.Window) }
			return each(bursty, ratelimiter.RateLimiter[any].TryAcquirePermit)
		}},
		{Name: "go-zero RollingWindow in a sync.Map", Note: "10 buckets; Reduce, then Add", Module: "github.com/zeromicro/go-zero", Keys: true, New: func(c Config) Limiter {
			return each(func(string) *goZeroWindow { return newGoZeroWindow(c.Window) }, func(w *goZeroWindow) bool {
				if goZeroSum(w) >= c.Quota {
					return false
				}
				w.Add(1)
				return true
			})
		}},
		{Name: "Sentinel LeapArray in a sync.Map", Note: "10 buckets; Count, then AddCount", Module: "github.com/alibaba/sentinel-golang", Keys: true, Clock: true, New: func(c Config) Limiter {
			window := func(string) *stat.BucketLeapArray {
				return stat.NewBucketLeapArray(buckets, uint32(c.Window.Milliseconds()))
			}
			l := each(window, func(w *stat.BucketLeapArray) bool {
				if w.Count(base.MetricEventPass) >= c.Quota {
					return false
				}
				w.AddCount(base.MetricEventPass, 1)
				return true
			})
			if c.Now != nil { // the package has one clock
				util.SetClock(readOnly(c.Now))
				l.Close = func() { util.SetClock(util.NewRealClock()) }
			}
			return l
		}},
		{Name: "Sentinel hot-param check", Note: "for two million parameters; Entry and Exit", Module: "github.com/alibaba/sentinel-golang", Keys: true,
			NoTrace: "its windows have whole seconds, and its clock cannot be set back", New: newHotParam},
	}
}

func timeBucket(c Config) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(c.Quota)/c.Window.Seconds()), int(c.Quota))
}

// russellLuo returns a limiter that counts a share of the previous window: the part that is still inside.
func russellLuo(c Config) *slidingwindow.Limiter {
	l, _ := slidingwindow.NewLimiter(c.Window, c.Quota, func() (slidingwindow.Window, slidingwindow.StopFunc) { return slidingwindow.NewLocalWindow() })
	return l
}

// throttledIn returns GCRA in a map with one lock, or in an LRU cache.
func throttledIn(maxKeys int) func(Config) Limiter {
	return func(c Config) Limiter {
		s := measure.Must(throttledstore.New(maxKeys))
		if c.Now != nil {
			s.SetTimeNow(c.Now)
		}
		return throttledOn(throttled.WrapStoreWithContext(s), c)
	}
}

func throttledOn(s throttled.GCRAStoreCtx, c Config) Limiter {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(c.Quota), c.Window), MaxBurst: int(c.Quota) - 1}
	l := measure.Must(throttled.NewGCRARateLimiterCtx(s, quota))
	ctx := context.Background()
	return Limiter{Allow: func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}}
}

func ululeAllow(s limiter.Store, c Config) func(string) bool {
	l, ctx := limiter.New(s, limiter.Rate{Period: c.Window, Limit: c.Quota}), context.Background()
	return func(key string) bool {
		r, err := l.Get(ctx, key)
		return err == nil && !r.Reached
	}
}

type goZeroWindow = collection.RollingWindow[int64, *collection.Bucket[int64]]

func newGoZeroWindow(d time.Duration) *goZeroWindow {
	bucket := func() *collection.Bucket[int64] { return new(collection.Bucket[int64]) }
	return collection.NewRollingWindow(bucket, buckets, d/buckets)
}

func goZeroSum(w *goZeroWindow) (sum int64) {
	w.Reduce(func(b *collection.Bucket[int64]) { sum += b.Sum })
	return sum
}

// hotParams numbers the resources of Sentinel, whose names are global.
var hotParams atomic.Int64

func newHotParam(c Config) Limiter {
	resource := fmt.Sprint("resource ", hotParams.Add(1))
	measure.Must(hotspot.LoadRulesOfResource(resource, []*hotspot.Rule{{
		Resource: resource, MetricType: hotspot.QPS, ControlBehavior: hotspot.Reject,
		Threshold: c.Quota, DurationInSec: max(1, int64(c.Window/time.Second)), ParamsMaxCapacity: 2_000_000,
	}}))
	return Limiter{Allow: func(key string) bool {
		e, blocked := api.Entry(resource, api.WithTrafficType(base.Inbound), api.WithArgs(key))
		if blocked != nil {
			return false
		}
		e.Exit()
		return true
	}, Close: func() { _ = hotspot.ClearRulesOfResource(resource) }} // clearing cannot fail
}

// readOnly is a clock of juju/ratelimit and of Sentinel that can only be read.
type readOnly func() time.Time

func (c readOnly) Now() time.Time            { return c() }
func (readOnly) Sleep(time.Duration)         {}
func (c readOnly) CurrentTimeMillis() uint64 { return uint64(c().UnixMilli()) }
func (c readOnly) CurrentTimeNano() uint64   { return uint64(c().UnixNano()) }

// Rolling is a window of statistics with 10 buckets over a second.
type Rolling struct {
	Name string
	// New makes a window and returns functions that add 1 and return the sum.
	New func() (add func(), sum func() int64)
}

// Windows returns the windows of statistics, after the raw cost that bounds them.
func Windows() []Rolling {
	return []Rolling{
		{"raw: time.Since + atomic add; atomic load", func() (func(), func() int64) {
			start, n := time.Now(), new(atomic.Int64)
			return func() { n.Add(1 + min(0, int64(time.Since(start)))) }, func() int64 { return max(n.Load(), -int64(time.Since(start))) }
		}},
		// What the count, the sum, the least and the greatest value of one bucket need.
		{"baseline: time.Since + two atomic adds + two loads; two loads", func() (func(), func() int64) {
			start, c := time.Now(), new(struct{ count, sum, least, most atomic.Int64 })
			return func() {
				c.sum.Add(1 + min(0, int64(time.Since(start))))
				if c.least.Load() <= 1 && c.most.Load() >= 0 {
					c.count.Add(1)
				}
			}, func() int64 { return max(c.count.Load(), c.sum.Load(), -int64(time.Since(start))) } // equal: each hit adds 1
		}},
		{"weir rolling.Window", func() (func(), func() int64) {
			w := rolling.MustNew[int64](buckets, time.Second)
			return func() { w.Add(1) }, w.Sum
		}},
		{"go-zero RollingWindow: Add; Reduce", func() (func(), func() int64) {
			w := newGoZeroWindow(time.Second)
			return func() { w.Add(1) }, func() int64 { return goZeroSum(w) }
		}},
		{"Sentinel LeapArray: AddCount; Count", func() (func(), func() int64) {
			w := stat.NewBucketLeapArray(buckets, 1000)
			return func() { w.AddCount(base.MetricEventPass, 1) }, func() int64 { return w.Count(base.MetricEventPass) }
		}},
	}
}
