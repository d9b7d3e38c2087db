package peer

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

const throttledModule = "github.com/throttled/throttled/v2"

// throttledMemory returns GCRA in a map with one lock, and in an LRU cache.
func throttledMemory() []Peer {
	in := func(maxKeys int) func(Config) (Limiter, error) {
		return func(c Config) (Limiter, error) {
			s, err := memstore.New(maxKeys)
			if err != nil {
				return Limiter{}, err
			}
			if c.Now != nil {
				s.SetTimeNow(c.Now)
			}
			return throttledOn(throttled.WrapStoreWithContext(s), c)
		}
	}
	return []Peer{
		{Name: "throttled, map", Module: throttledModule, Keys: true, Clock: true, New: in(0)},
		{
			Name: "throttled, LRU", Module: throttledModule, Keys: true, Clock: true,
			Note: "for two million keys", New: in(2_000_000),
		},
	}
}

// throttledRedis returns GCRA in Redis, by a read and a compare-and-swap.
func throttledRedis() []Peer {
	return []Peer{{
		Name: "throttled (GCRA)", Module: throttledModule, Keys: true,
		New: func(c Config) (Limiter, error) {
			client := redis.NewClient(redisOptions(c))
			s, err := goredisstore.NewCtx(client, "throttled:")
			if err != nil {
				return Limiter{}, err
			}
			l, err := throttledOn(s, c)
			l.Close = func() { _ = client.Close() } // nothing is lost
			return l, err
		},
	}}
}

func throttledOn(s throttled.GCRAStoreCtx, c Config) (Limiter, error) {
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(c.Quota), c.Window), MaxBurst: int(c.Quota) - 1,
	})
	ctx := context.Background()
	return Limiter{Allow: func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}}, err
}
