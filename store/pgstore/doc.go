// Package pgstore keeps counters in PostgreSQL, so that several processes can share them.
//
//	s, err := pgstore.Open(ctx, "postgres://weir@localhost/app")
//	e, err := weir.NewEngine(rules, weir.WithStore(s))
//
// The states of keys are rows of one table. A call locks the rows of its keys, in the order of
// the keys, decides in Go and writes back what has changed, in one transaction, by the server's
// clock. All of its keys are decided in one atomic step. Calls that wait at the same time share
// a transaction; each of them is decided by itself.
//
// # What a crash loses
//
// The option durability of the URL states when a decision is final:
//
//	async     the default: a crash of the server loses the decisions of about its last 0.6
//	          seconds (three times wal_writer_delay), and a failover those that had not reached
//	          the standby. A restart loses nothing.
//	sync      nothing that was answered is lost, as the server's synchronous_commit promises it.
//	          Each transaction waits for the disk.
//	unlogged  a crash loses all counters, and a standby has none. It writes least. A restart
//	          without a crash loses nothing.
//
// # Outages
//
// Calls do not wait for a server that does not answer: five time-outs in a row open a circuit breaker, which
// ends calls at once. The store asks the server by itself until that answers in time, and makes lost connections again.
//
// The [store.OutageError] of a call has one of these reasons, which metrics, logs and answers
// have, too. Calls with the marked ones were certainly not counted.
//
//	late          no answer before the deadline. A call that was not decided by then is
//	              Uncounted
//	refused    *  the server refuses the connection or the login, or a right is missing
//	circuit-open * not sent, because the server has not answered lately
//	busy       *  not sent, because too many calls wait already, or the server has no more
//	              connections, or another program holds locks
//	full       *  the server has no more memory or disk space
//	foreign    *  the row of the key is not a counter, or the table is of another version
//	loading       the server starts, stops or recovers, or an operator has ended the connection
//	read-only  *  the server accepts no writes, like a standby
//	closed        the connection broke before the answer
//	unknown       all other causes
package pgstore
