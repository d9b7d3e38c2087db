package peer

import (
	"time"

	"github.com/zeromicro/go-zero/core/collection"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

const (
	goZeroModule = "github.com/zeromicro/go-zero"
	buckets      = 10 // of windows with buckets
)

// go-zero prints the usage of its process to standard output once a minute.
func init() { logx.Disable() }

type goZeroWindow = collection.RollingWindow[int64, *collection.Bucket[int64]]

func newGoZeroWindow(d time.Duration) *goZeroWindow {
	bucket := func() *collection.Bucket[int64] { return new(collection.Bucket[int64]) }
	return collection.NewRollingWindow(bucket, buckets, d/buckets)
}

func goZeroSum(w *goZeroWindow) (sum int64) {
	w.Reduce(func(b *collection.Bucket[int64]) { sum += b.Sum })
	return sum
}

// goZeroMemory returns a limiter made of a rolling window, as its users make it:
// sum, then add.
func goZeroMemory() []Peer {
	return []Peer{{
		Name: "go-zero RollingWindow in a sync.Map", Module: goZeroModule, Keys: true,
		Note: "10 buckets; Reduce, then Add",
		New: func(c Config) (Limiter, error) {
			return each(func() *goZeroWindow { return newGoZeroWindow(c.Window) }, func(w *goZeroWindow) bool {
				if goZeroSum(w) >= c.Quota {
					return false
				}
				w.Add(1)
				return true
			}), nil
		},
	}}
}

// goZeroRedis returns its two limiters, which work with Redis only.
func goZeroRedis() []Peer {
	open := func(c Config) (*redis.Redis, error) {
		return redis.NewRedis(redis.RedisConf{Host: c.Redis, Type: redis.NodeType})
	}
	return []Peer{{
		Name: "go-zero PeriodLimit (fixed)", Module: goZeroModule, Keys: true,
		New: func(c Config) (Limiter, error) {
			r, err := open(c)
			if err != nil {
				return Limiter{}, err
			}
			l := limit.NewPeriodLimit(int(c.Window.Seconds()), int(c.Quota), r, "period:")
			return Limiter{Allow: func(key string) bool {
				state, err := l.Take(key)
				return err == nil && state != limit.OverQuota
			}}, nil
		},
	}, {
		Name: "go-zero TokenLimiter (bucket)", Module: goZeroModule, Keys: true,
		Note: "one per key in a sync.Map; its rate is in whole hits per second, rounded up here",
		New: func(c Config) (Limiter, error) {
			r, err := open(c)
			if err != nil {
				return Limiter{}, err
			}
			rate := int((float64(c.Quota) + c.Window.Seconds() - 1) / c.Window.Seconds())
			return eachKey(func(key string) *limit.TokenLimiter {
				return limit.NewTokenLimiter(rate, int(c.Quota), r, key)
			}, (*limit.TokenLimiter).Allow), nil
		},
	}}
}
