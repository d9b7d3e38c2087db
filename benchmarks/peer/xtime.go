package peer

import (
	"golang.org/x/time/rate"
)

// xtime returns a bucket of Quota hits that fills in Window.
func xtime() []Peer {
	const module = "golang.org/x/time"
	bucket := func(c Config) *rate.Limiter {
		return rate.NewLimiter(rate.Limit(float64(c.Quota)/c.Window.Seconds()), int(c.Quota))
	}
	return []Peer{{
		Name: "x/time/rate", Module: module,
		New: func(c Config) (Limiter, error) {
			l := bucket(c)
			return Limiter{Allow: func(string) bool { return l.Allow() }}, nil
		},
	}, {
		Name: "x/time/rate in a sync.Map", Module: module, Keys: true, Clock: true,
		New: func(c Config) (Limiter, error) {
			allow := (*rate.Limiter).Allow
			if c.Now != nil {
				allow = func(l *rate.Limiter) bool { return l.AllowN(c.Now(), 1) }
			}
			return each(func() *rate.Limiter { return bucket(c) }, allow), nil
		},
	}}
}
