package weir

import "time"

// Observer is called by an [Engine], a [Limiter] or a [Counter], for metrics
// and logs. Its methods are called on the caller's goroutine, may be called
// concurrently, and must not keep d.
type Observer interface {
	// Decided is called after each decision with the time that it took. Of a
	// batch each decision is given the time of the whole batch. A limiter's
	// decision names the limiter where an engine's names a rule.
	Decided(verb Verb, d *Decision, took time.Duration)

	// Failed is called for each request that is answered with an error, such
	// as bad input, a done context or a closed store.
	Failed(verb Verb, err error)

	// Outage is called when a store could not answer, with the cause, before
	// the outage policies decide. It is also called with the verb [Refund] when
	// local memory could not take back what a denied request had counted there.
	Outage(verb Verb, err error)
}
