package peer

import (
	"time"

	"github.com/RussellLuo/slidingwindow"
)

// slidingWindow returns a limiter that counts a share of the previous window: the
// part that is still inside.
func slidingWindow() []Peer {
	const module = "github.com/RussellLuo/slidingwindow"
	window := func(c Config) *slidingwindow.Limiter {
		l, _ := slidingwindow.NewLimiter(c.Window, c.Quota, func() (slidingwindow.Window, slidingwindow.StopFunc) {
			return slidingwindow.NewLocalWindow()
		})
		return l
	}
	return []Peer{{
		Name: "RussellLuo/slidingwindow", Module: module,
		New: func(c Config) (Limiter, error) {
			l := window(c)
			return Limiter{Allow: func(string) bool { return l.Allow() }}, nil
		},
	}, {
		Name: "RussellLuo/slidingwindow in a sync.Map", Module: module, Keys: true, Clock: true,
		New: func(c Config) (Limiter, error) {
			now := time.Now
			if c.Now != nil {
				now = c.Now
			}
			allow := func(l *slidingwindow.Limiter) bool { return l.AllowN(now(), 1) }
			return each(func() *slidingwindow.Limiter { return window(c) }, allow), nil
		},
	}}
}
