package peer

import (
	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
)

// tollboothLocal returns a limiter with an x/time bucket per key, in a cache whose
// entries expire. It is called as its middleware calls it, outside HTTP.
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
