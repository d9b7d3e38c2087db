package peer

import (
	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
)

// tollboothLocal keeps an x/time bucket a key in a cache that expires. It is
// asked as its middleware asks it, outside HTTP.
func tollboothLocal() []Peer {
	return []Peer{{
		Name: "didip/tollbooth", Module: "github.com/didip/tollbooth/v7", Keys: true,
		Note: "keys expire after a window; LimitReached, outside HTTP",
		New: func(c Config) (Limiter, error) {
			options := &limiter.ExpirableOptions{DefaultExpirationTTL: c.Window}
			l := tollbooth.NewLimiter(float64(c.Quota)/c.Window.Seconds(), options).SetBurst(int(c.Quota))
			return Limiter{Allow: func(key string) bool { return !l.LimitReached(key) }}, nil
		},
	}}
}
