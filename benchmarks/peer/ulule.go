package peer

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const ululeModule = "github.com/ulule/limiter/v3"

// ululeMemory returns a fixed window that starts with the first hit.
func ululeMemory() []Peer {
	return []Peer{{
		Name: "ulule/limiter", Module: ululeModule, Keys: true,
		Note: "cleans up once per window, and every 30 seconds, its default",
		New: func(c Config) (Limiter, error) {
			s := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: "u", CleanUpInterval: min(c.Window, limiter.DefaultCleanUpInterval)})
			return Limiter{Allow: ululeAllow(s, c)}, nil
		},
	}}
}

func ululeRedis() []Peer {
	return []Peer{{
		Name: "ulule/limiter (fixed)", Module: ululeModule, Keys: true,
		New: func(c Config) (Limiter, error) {
			client := redis.NewClient(redisOptions(c))
			s, err := ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "ulule"})
			if err != nil {
				return Limiter{}, err
			}
			return Limiter{
				Allow: ululeAllow(s, c),
				Close: func() { _ = client.Close() }, // nothing is lost
			}, nil
		},
	}}
}

func ululeAllow(s limiter.Store, c Config) func(string) bool {
	l, ctx := limiter.New(s, limiter.Rate{Period: c.Window, Limit: c.Quota}), context.Background()
	return func(key string) bool {
		r, err := l.Get(ctx, key)
		return err == nil && !r.Reached
	}
}
