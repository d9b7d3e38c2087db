// Package redisstore keeps counters in Redis or Valkey, so that several processes
// can share them.
//
//	s, err := redisstore.Open(ctx, "redis://localhost:6379")
//	e, err := weir.NewEngine(rules, weir.WithStore(s))
//
// A script on the server decides all ops of a call in one atomic step, by the
// server's clock. On a cluster there is one such step for each slot; see
// [Store.Do].
//
// # Outages
//
// The [store.OutageError] of a call has one of these reasons, which metrics, logs and
// answers have, too. Calls with the marked ones were certainly not counted.
//
//	late            no answer before the deadline, or the call reached the server after it
//	refused      *  the server refuses the connection or the login: no program listens
//	                there, or a password, a certificate or a permission is wrong
//	circuit-open *  not sent, because the circuit breaker of the server is open, or the
//	                server is not known yet
//	busy         *  not sent, because too many calls wait for the server already; or the
//	                server is busy with a long script
//	full         *  the server is out of memory
//	foreign         the value of the key is not a counter
//	loading      *  the server is still loading its data, or its part of a cluster has no
//	                primary
//	read-only    *  the server accepts no writes
//	closed          the connection broke before the answer
//	unconfirmed     the server has counted it, and too few replicas have confirmed that:
//	                its results are set
//	unknown         all other causes
package redisstore
