package peer

import (
	"context"

	"github.com/sethvargo/go-limiter/memorystore"
)

// goLimiter returns sethvargo's bucket, which is refilled in ticks.
func goLimiter() []Peer {
	return []Peer{{
		Name: "sethvargo/go-limiter", Module: "github.com/sethvargo/go-limiter", Keys: true,
		Note: "sweeps once per window, and drops keys unused for a window",
		New: func(c Config) (Limiter, error) {
			s, err := memorystore.New(&memorystore.Config{
				Tokens: uint64(c.Quota), Interval: c.Window,
				SweepInterval: c.Window, SweepMinTTL: c.Window,
			})
			if err != nil {
				return Limiter{}, err
			}
			ctx := context.Background()
			return Limiter{
				Allow: func(key string) bool {
					_, _, _, ok, err := s.Take(ctx, key)
					return ok && err == nil
				},
				Close: func() { _ = s.Close(ctx) }, // it cannot fail
			}, nil
		},
	}}
}
