// Package weir counts how often something happens and decides whether it may
// happen again: hits, sums or distinct members, per key, over a window. A limit
// that is reached is an answer, never an error.
//
// # One limit
//
// A [Limiter] holds each key to one limit:
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Hour))
//	r, err := posts.Allow(ctx, "user:42")
//	if err == nil && !r.Allowed {
//		// tell the user to come back in r.RetryAfter
//	}
//
// The window decides how hits age:
//
//	Sliding   any stretch of the given length; never more than the quota
//	Cells     the same in 60 counters, for very high rates
//	Fixed     starts with the first hit
//	Calendar  the current minute, hour, day, week, month or year
//	Bucket    a steady rate with a burst
//	Members   distinct members instead of hits, in any stretch
//
// Package window describes each of them, with its error.
//
// A [Counter] counts without a limit and keeps a history.
//
// # Rules
//
// An [Engine] decides requests by a set of rules. A request is an action,
// described by attributes. Each rule says when it applies, per what key it
// counts, its limit, and the outcome over the limit. Package rulefile reads
// rules from YAML; package rule makes them in Go.
//
//	e, err := weir.NewEngine(file.Set)
//	d, err := e.Take(ctx, weir.Request{
//		Attributes: weir.Attributes("action", "post", "user", "42"),
//	})
//
// There are four verbs, with the same names in Go, over HTTP and on the
// command line. There check is "weir take --check", because "weir check" reads
// rules files.
//
//	check   looks and counts nothing
//	take    counts in every rule that matches if all of them admit, else in none
//	record  counts whatever the limits
//	refund  gives hits back
//
// A [Decision] holds the outcome and the numbers of every rule that matched.
// [Engine.DoAll] decides many requests at once.
//
// # Stores and outages
//
// Counters are kept in memory unless [WithStore] gives another store, such as
// one of package redisstore for several processes that count together. When
// such a store cannot answer, each rule's outage policy decides in its place
// (on_outage in a rules file, [WithOutage] for a limiter), and the answer says
// Degraded. With [WithLocal] this process's memory decides meanwhile, and the
// store gets its counts afterwards.
//
// In memory the clock is the machine's, read once a call, and never runs
// backwards. Under testing/synctest it is the bubble's.
//
// # Errors
//
// Errors are bad input, as a [*fault.Fault] that names the field; a context
// that is done; or a store that is closed. After an error nothing was counted.
//
// Everything here is safe for concurrent use. An [Observer] is called after
// each decision, error and outage.
package weir
