package peer

import (
	"net/http"

	"github.com/go-chi/httprate"
)

// httprateLocal weighs two windows, in two maps under one lock. It is asked as
// its middleware asks it, without headers.
func httprateLocal() []Peer {
	return []Peer{{
		Name: "go-chi/httprate", Module: "github.com/go-chi/httprate", Keys: true,
		Note: "OnLimit without headers, outside HTTP",
		New: func(c Config) (Limiter, error) {
			l := httprate.NewRateLimiter(int(c.Quota), c.Window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
			r, err := http.NewRequest(http.MethodGet, "/", http.NoBody)
			return Limiter{Allow: func(key string) bool { return !l.OnLimit(nil, r, key) }}, err
		},
	}}
}
