// Package weir counts how often something happens and decides whether it may
// happen again. It counts hits, sums or distinct members, per key, over a
// window. Being over a limit is an answer, never an error.
//
// # One limit
//
// Most programs need [Limiter.Allow]. A [Limiter] holds each key to one limit:
//
//	posts := weir.MustLimiter(weir.Sliding(5, time.Hour))
//	r, err := posts.Allow(ctx, "user:42")
//	if err == nil && !r.Allowed {
//		// tell the user to come back in r.RetryAfter
//	}
//
// The window decides how hits age:
//
//	Sliding   the last d, at any moment: never more than the quota
//	Cells     as Sliding, in 60 counters, for very high rates
//	Fixed     d, starting with the first hit
//	Calendar  the current minute, hour, day, week, month or year
//	Bucket    a steady rate with a burst
//	Members   as Sliding, for distinct members instead of hits
//
// The function of the same name describes each of them, and where it denies
// early or admits more. Package window has further settings.
//
// [And] adds limits: a hit counts under all of them or none.
// [Limiter.Wait] sleeps until a hit is admitted, in the order in which callers
// come. [Limiter.AllowUpTo] admits as many hits as fit.
//
// A [Counter] counts without a limit and keeps a history.
//
// # Rules
//
// An [Engine] decides requests by a set of rules. A request is an action,
// described by attributes. A rule states which requests it matches, which
// attributes make the key that it counts, its limit, and the outcome of a
// request over the limit. Package rulefile reads rules from YAML; package rule
// makes them in Go.
//
//	file, err := rulefile.Load("rules.yaml")
//	e, err := weir.NewEngine(file.Set)
//	d, err := e.Take(ctx, weir.Request{
//		Attributes: weir.Attributes("action", "post", "user", "42"),
//	})
//
// There are seven verbs, with the same names in Go, over HTTP and on the
// command line. One differs there: check is "weir take --check", because
// "weir check" reads rules files.
//
//	check   decides and counts nothing
//	take    decides and, if all limits admit the request, counts it
//	record  counts without asking the limits
//	refund  gives hits back
//	settle  ends what a take holds, at its real cost
//	cancel  gives back what a take counted
//	renew   keeps alive what a take holds
//
// A take under a rule with [rule.Rule.Hold], or with a held window
// ([window.Held]), holds its hits: they count, and are not final. Its Decision
// has a [Receipt] that settle, cancel and renew name the take by. Hits that no
// call ends are released or become final when the length of the hold is over.
//
// A denied take is charged to no limit, unless a rule asks for that
// ([rule.Rule.CountDenied]).
//
// A [Decision] holds the outcome and the numbers of every rule that matched.
// [Engine.DoAll] decides many requests at once.
//
// # Stores and outages
//
// Counters are kept in memory unless [WithStore] gives another store, such as
// one of package redisstore, which several processes can share. When such a
// store cannot answer, there is an outage: the outage policy of each rule
// (on_outage in a rules file) or limiter ([WithOutage]) decides instead, and
// the answer is marked Degraded. By default the policy is local: this process's
// memory decides during the outage, and its counts are recorded in the shared
// store afterwards. Each process then admits the whole quota, unless [WithLocal]
// or [WithNodes] says how many processes there are.
//
// The store in memory reads the machine's clock once a call. Its time never
// runs backwards. In a testing/synctest bubble it is the bubble's time.
//
// # Errors
//
// A call returns an error for bad input, a [*fault.Fault] that names the field;
// for a context that is done; and for a store that is closed ([ErrClosed]). Calls
// that no outage policy can answer, such as a Forget, return an outage as
// a [*store.OutageError].
//
// After an error nothing was counted or changed, but for two cases that are uncertain:
// a context that ends while a call to a store over the network is under way, and an
// outage whose Uncounted is false.
//
// Engines, limiters and counters are safe for concurrent use. An [Observer] is
// called after each decision and each error, and at each outage.
//
// # Other packages
//
//	httplimit           middleware for net/http; grpclimit and contrib have others
//	httplimit/outbound  limits the requests that a program sends
//	compat/rate         the API of golang.org/x/time/rate
//	weirslog            an observer for log/slog; contrib has weirprom and weirotel
//	weirtest            a store for the tests of programs
package weir
