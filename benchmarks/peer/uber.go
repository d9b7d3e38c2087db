package peer

import "go.uber.org/ratelimit"

// uberRatelimit returns a limiter that makes callers wait instead of denying. Its
// rate is so high that it never waits.
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
