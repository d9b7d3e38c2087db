// Package redisstore keeps counters in Redis or Valkey, so that several processes
// can share them.
//
//	s, err := redisstore.Open(ctx, "redis://localhost:6379")
//	e, err := weir.NewEngine(rules, weir.WithStore(s))
//
// A script on the server decides all ops of a call in one atomic step, by the
// server's clock. On a cluster there is one such step for each slot; see
// [Store.Do].
package redisstore
