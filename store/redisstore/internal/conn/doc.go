// Package conn sends calls to servers: connections, batching, deadlines, the circuit
// breaker, the topology of a cluster. Package script makes what is sent, and reads the
// answers. The Redis library reads and writes all connections.
//
// # The way of a call
//
// [Servers] names the [Node] of a call; a cluster sends a call on that another node
// serves (servers.go). The node refuses it at once when the circuit breaker is open, there
// is no connection or too many calls are in flight; else it gives the call a deadline, and
// decides it, again where need be (node.go). The batcher sends one call by itself or with
// those of other callers (batcher.go). Slices of a batch of calls, in [Servers].RunAll, are
// not batched further. One send turns calls into commands and replies into answers
// (send.go).
//
// # What keeps a caller from waiting
//
// A decision waits for answers until its time-out, [Config].Timeout: [remote.Within]
// puts its end into the context, once for all that it asks. Four things keep a decision
// from waiting when that is in vain.
//
//   - The connection manager of each node. It makes the node's connections and loads the
//     programs, outside the time of any caller, and again after a loss. Without a
//     connection calls fail at once. New nodes get slots when their manager has
//     ended its first attempt. It asks the node for its time once a second.
//   - The circuit breaker of each node. Five time-outs in a row open it: calls for the
//     node fail at once. Concurrent time-outs count as one, and a slice of a batch is
//     one call. The manager then asks the node until it answers in time; no caller's
//     call is a trial. Any answer closes the breaker, an error of the server too. A call
//     whose context was done earlier than its time-out does not count, nor does one that
//     got less than half of it.
//   - The limit of calls in flight, [Config].InFlight, for each node. A call above
//     it, or above the part of its namespace, waits for half of its time at most
//     ([remote.Server.Begin]). A slice counts as its calls.
//   - The batcher. A caller whose time is over leaves, whatever becomes of its flush.
//
// # Connections
//
// Each connection is a client of the Redis library that connects once, because the library
// otherwise connects in a caller's time. A node has two, which are pipelined always: all
// calls share the first, and the second is for its loss. A distant node gets two more within
// a second, and its calls are spread over the four. Calls that wait for replicas
// have four more.
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
// A call is sent again only after an answer which means that nothing was
// counted: the server does not have the program (NOSCRIPT), the slot is elsewhere
// (MOVED, ASK), some keys of a slot have moved already (TRYAGAIN), the call came
// after its deadline and its caller still has time, the calendar periods in it
// are not the server's, or a key has holds or a ban that the program does not know.
// The last happens once at most, the one before once and twice for each op, the
// one before that three times, a redirection five times. The library retries nothing.
//
// # Batching
//
// See the batcher. With 64 callers, which all begin at once and call again after each answer:
//
//	 4 callers   sent by themselves
//	 4, 8, 16, 32  leave as flushes, each when as many calls are queued as are in flight
//	from then on the calls of those who have an answer are queued, and leave when they are as
//	             many as those still in flight, or when fewer than 4 are in flight
//
// A flush has up to 64 calls, so more than 128 callers leave some in the queue. Where the server
// is far away, calls leave as long as there are fewer flushes than one for each half a millisecond
// of a round trip.
//
// Calls are sent by themselves after ASKING, after TRYAGAIN, and with many
// keys. The calls of a flush or a slice that count are followed by one WAIT where replicas
// have to confirm. A flush of several commands has its answers when all replies are there.
// A slice is decided in the order of its calls, but for those that are sent again;
// the first call with a program that a node may not have brings its text.
//
// # Giving back
//
// A call whose keys are in several slots is one for each slot. When one slot
// denies, or does not answer, the store gives back what the others have counted,
// as calls with their own deadline: the instant at which the hits leave
// their window. The caller waits for this up to the end of its decision; a fifth
// of the time is kept for it. It continues in the background, for up to a second or the time-out if that is longer.
// Package redisstore does it.
package conn
