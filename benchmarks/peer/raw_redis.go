package peer

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// rawRedis returns one script call with each of two clients, rueidis (which
// pipelines) and go-redis, and INCR without a script.
func rawRedis() []Peer {
	const script = `return redis.call("INCR", KEYS[1])`
	ctx := context.Background()
	return []Peer{{
		Name: "raw: INCR, rueidis", Kind: Cost, Keys: true, Module: "github.com/redis/rueidis",
		New: func(c Config) (Limiter, error) {
			client, err := openRueidis(c)
			if err != nil {
				return Limiter{}, err
			}
			return Limiter{Allow: func(key string) bool {
				return client.Do(ctx, client.B().Incr().Key(key).Build()).Error() == nil
			}, Close: client.Close}, nil
		},
	}, {
		Name: "raw: EVALSHA of one INCR, rueidis", Kind: Cost, Keys: true, Reference: true, Module: "github.com/redis/rueidis",
		New: func(c Config) (Limiter, error) {
			client, err := openRueidis(c)
			if err != nil {
				return Limiter{}, err
			}
			lua := rueidis.NewLuaScript(script)
			return Limiter{Allow: func(key string) bool {
				return lua.Exec(ctx, client, []string{key}, nil).Error() == nil
			}, Close: client.Close}, nil
		},
	}, {
		Name: "raw: EVALSHA of one INCR, go-redis", Kind: Cost, Keys: true, Module: "github.com/redis/go-redis/v9",
		New: func(c Config) (Limiter, error) {
			client, lua := redis.NewClient(redisOptions(c)), redis.NewScript(script)
			return Limiter{Allow: func(key string) bool {
				return lua.Run(ctx, client, []string{key}).Err() == nil
			}, Close: func() { _ = client.Close() }}, nil // nothing is lost
		},
	}}
}

func openRueidis(c Config) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Redis}, DisableCache: true})
}
