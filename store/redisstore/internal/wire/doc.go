// Package wire sends steps to servers: nodes, connections, the topology of a
// cluster, deadlines. Package script makes what is sent, and reads the answers.
//
// # What keeps a caller from waiting
//
// A decision waits for answers until its time-out, [Config].Timeout: [Timer.Within]
// puts its end into the context, once for all that it asks. Five things keep it
// from waiting when that is in vain.
//
//   - The keeper of each node. It makes the node's connections and loads the
//     programs, outside the time of any caller, and again after a loss. Without a
//     connection calls fail at once. New nodes get slots when their keeper has
//     ended its first attempt. It asks the node for its time once a second.
//   - The breaker of each node. Five silences in a row open it: calls for the node
//     fail at once. Calls without an answer at the same time are one silence, and
//     a slice of a batch is one call. The keeper then asks the node until it
//     answers in time; no caller's call is a trial. Any answer closes the breaker,
//     an error of the server too. A call whose context was done earlier than its
//     time-out does not count, nor does one that got less than half of it.
//   - The bound of calls in flight, [Config].InFlight, for each node. A call above
//     it fails at once. A slice counts as its calls.
//   - The queue of a link. The client is told to pipeline always: in its other mode
//     a call that gives up closes the connection for all others.
//   - A shared timer. Decisions with a time-out of up to 50 ms share a context with
//     those that began in the same millisecond.
//
// # Connections
//
// A node has two links and two directs. A link is a connection of the client's
// library: calls share it, and pass the library's two goroutines on their way. All
// calls that share one use the first; the second is for its loss. A direct is a
// connection for one command at a time, which its caller writes and reads without
// another goroutine. Callers who are alone, and runs, use a direct that is free,
// else the first link. A caller who gives up leaves the reply to a goroutine of the
// direct. A direct that breaks takes one call with it, and the keeper makes another.
// Calls that wait for replicas have four links more.
//
// # What keeps a late call from counting
//
// Each call carries a deadline on the server's clock: the instant at which its
// caller gives up. A program that runs later answers so and counts nothing.
// The server's clock comes from the answers of the server, and before the first
// of them from TIME. The estimate is never ahead of the server, so a deadline may
// be early by the time an answer is under way, and is never late.
//
// # What is sent twice
//
// A step is sent again only after an answer which means that nothing was
// counted: the server does not have the program (NOSCRIPT), the slot is elsewhere
// (MOVED, ASK), some keys of a slot have moved already (TRYAGAIN), the step came
// after its deadline and its caller still has time, the calendar periods in it
// are not the server's, or a key has holds or a ban that the program does not know.
// The last happens once at most, the one before once and twice for each op, the
// one before that three times, a redirection five times. The client retries nothing.
//
// # Batches
//
// [Servers].RunAll sends jobs as one pipeline to each node, on one connection, so
// that a node decides them in order. Neighbours with the same program are one
// command, which decides a run of up to 64. Jobs that have to be sent again follow
// together, in the same time-out. The first job with a program that a node may
// not have brings its text. ASKING goes before each job that needs it, and one WAIT
// behind all jobs of a node that count.
//
// # Company
//
// Callers that wait for the same node at the same time travel together, in a train: up
// to 64 steps, written at once on one connection. Steps with the same program and, on a
// cluster, the same slot are one command, which decides them in a run. A caller that
// finds fewer than two trains under way goes at once, alone. The others stand in line,
// and leave with the train that follows one that is back. When they are as many as the
// train has steps, they leave at once, so that the server has work while this machine
// hands the answers out; else when the callers with answers have had their turn. Where
// the write of those who leave takes long, the answers are handed out meanwhile. A caller
// whose context ends leaves the line or the train; the deadline in its step keeps it from
// counting if it has left already. Callers wait for one channel: the company ends their
// decisions, and looks every 10 ms for those who were cancelled.
// Where a round trip takes more than 1 ms, more trains are under way, so that nobody
// waits much longer than half a millisecond for company. Steps go alone behind ASKING,
// after TRYAGAIN, and with many keys. Trains that count and wait for replicas have one
// WAIT for all; two of them are under way however long that takes.
//
// # Giving back
//
// A call whose keys are in several slots is one step for each slot. When one slot
// denies, or does not answer, the store gives back what the others have counted,
// as steps with a deadline of their own: the instant at which the hits leave
// their window. The caller waits for this up to the end of its decision; a fifth
// of the time is kept for it. It goes on for up to a second in the background.
// Package redisstore does it.
package wire
