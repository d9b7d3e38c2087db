package peer

import "go.uber.org/ratelimit"

// uberRatelimit spaces calls evenly and makes callers wait; it cannot deny. It
// is asked for a rate that nobody reaches, so that it never waits.
func uberRatelimit() []Peer {
	return []Peer{{
		Name: "uber ratelimit, Take", Module: "go.uber.org/ratelimit", Kind: Flows,
		Note: "makes callers wait instead of denying; at a rate that is never reached",
		New: func(Config) (Limiter, error) {
			l := ratelimit.New(1_000_000_000)
			return Limiter{Allow: func(string) bool { return !l.Take().IsZero() }}, nil
		},
	}}
}
