package peer

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRate returns a GCRA in a Lua script.
func redisRate() []Peer {
	return []Peer{{
		Name: "redis_rate (GCRA)", Module: "github.com/go-redis/redis_rate/v10", Keys: true,
		New: func(c Config) (Limiter, error) {
			client := redis.NewClient(redisOptions(c))
			l, ctx := redis_rate.NewLimiter(client), context.Background()
			limit := redis_rate.Limit{Rate: int(c.Quota), Burst: int(c.Quota), Period: c.Window}
			return Limiter{
				Allow: func(key string) bool {
					r, err := l.Allow(ctx, key, limit)
					return err == nil && r.Allowed == 1
				},
				Close: func() { _ = client.Close() }, // nothing is lost
			}, nil
		},
	}}
}

// redisOptions returns the defaults of go-redis: ten connections per core.
func redisOptions(c Config) *redis.Options {
	return &redis.Options{Addr: c.Redis}
}
