// Package weir counts how often something happens and decides whether it may
// happen again: hits, sums or distinct members, per key, over a window.
//
// # One limit
//
// A [Limiter] holds keys to one limit:
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Hour))
//	r, err := posts.Allow(ctx, "user:42")
//	if err == nil && !r.Allowed {
//		// tell them to come back in r.RetryAfter
//	}
//
// Five windows say how hits age: [Sliding] (never more than the quota in any
// window, exact up to a quota of 100 and within 1 % above), [Cells], [Fixed],
// [Calendar] and [Bucket]; [Members] counts different ones. Package window
// describes each, with its error.
//
// A [Counter] counts without a limit and keeps a history.
//
// # Rules
//
// An [Engine] holds requests to a set of rules. A request is what somebody
// wants to do, as attributes; the rules say when they apply, per what key,
// which limit, and what happens over it. Package rulefile reads rules from
// YAML; package rule makes them in Go.
//
//	e, err := weir.NewEngine(file.Set)
//	d, err := e.Take(ctx, weir.Request{
//		Attributes: weir.Attributes("action", "post", "user", "42"),
//	})
//
// A take counts in every rule that matches, or in none. The verbs are the same
// everywhere: check looks only, take looks and counts, record counts whatever
// the limit, refund gives back.
//
// # Time and state
//
// Counts are kept in memory unless [WithStore] names another store. In memory
// the clock is the machine's, read once a call, and never runs backwards; under
// testing/synctest it is the bubble's.
//
// Being over a limit is a Decision or a Result, never an error. Errors are bad
// input, a done context or a store that is closed; after one nothing was
// counted. Everything here is safe for concurrent use.
package weir
