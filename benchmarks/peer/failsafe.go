package peer

import "github.com/failsafe-go/failsafe-go/ratelimiter"

// failsafeBursty returns a peer with a fixed window.
func failsafeBursty() []Peer {
	type limiter = ratelimiter.RateLimiter[any]
	return []Peer{{
		Name: "failsafe-go bursty in a sync.Map", Module: "github.com/failsafe-go/failsafe-go", Keys: true,
		New: func(c Config) (Limiter, error) {
			bursty := func() limiter { return ratelimiter.NewBursty[any](uint(c.Quota), c.Window) }
			return each(bursty, limiter.TryAcquirePermit), nil
		},
	}}
}
