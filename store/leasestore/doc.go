// Package leasestore puts leases in front of a store that several processes share: a process takes a part
// of a quota from the store for a short time, and decides from its own memory while that lasts. So a hot key costs
// the store some hundred calls a second, however often it is asked for.
//
//	shared, err := redisstore.New("redis://localhost:6379")
//	…
//	s := leasestore.New(shared, func() int { return 8 }) // for 8 processes
//	engine, err := weir.NewEngine(rules, weir.WithStore(s))
//
// Limits ask for it by [window.Limit.Lease]. A key is leased only while it is hot here, and while its quota is
// at least 128 for each process. Everything else goes to the shared store as it is.
//
// # What is exact
//
// With [window.LeaseStrict], in any window no more than the quota is admitted, whatever processes crash or stop, and
// whatever requests and replies are lost, late or repeated, if the clocks of the processes and of the store run equally
// fast but for one part in 1000. An admission happens at the instant at which this process read its clock for it. A
// shared store that loses what it had acknowledged, as Redis can in a failover, admits again what it lost; and with
// leases also what is leased at that moment.
//
// With a credit of c ([window.Limit.Lease] above 0) a process that has no lease left admits up to c hits that the store
// does not know of. In any window N processes admit at most the quota and N·c. A process that is restarted has its
// credit anew. A key that is not hot any more stays in memory until the shared store has counted what was spent of its
// credit.
//
// A lease counts as used for all other processes, for a window after its end. What a process did not use it
// gives back at the end of the lease, or earlier if the demand falls.
//
// # What is leased
//
// Takes and checks of hits and sums under limits that can reserve ([window.Compiled.CanReserve]) and whose window ends,
// without CountDenied. A call that has an idempotency key or a hold, or that asks for as many hits as fit, goes to the
// store as a whole. So do records, refunds and corrections. A Read, a Forget, and all verbs that take hits back first
// settle the leases that this process has on the key; those of other processes count as used until they end, and a Set
// is refused while they are alive.
//
// A call for more hits than a lease has settles it, and is decided by the store. If the store is so far away that three
// round trips take more than a 16th of the window, it decides all that no lease covers, at once; if they take more than
// a third, nothing is leased. A lease that too few replicas of the store have confirmed is given back, and the store
// decides until one is confirmed.
//
// Several limits of one call are all or none across leased and direct ones: what was spent here is put back
// if the store denies. What was spent of a lease that has ended meanwhile stays counted.
package leasestore
