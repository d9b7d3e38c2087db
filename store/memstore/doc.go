// Package memstore keeps counters in this process's memory. It is the store
// that weir uses unless it is told otherwise.
//
//	space ──► table ──► shard ──► directory ──► segment ──► slot ──► state
//	by ID     a space   a lock    by hash       ≤ 832 keys  24 bytes  words
//
// A key is known by two 64-bit hashes of it, each with a random seed of its own
// that never leaves the process; the key itself is not kept. Two of n keys
// share a fingerprint with a probability of about n²/2^129: for ten million
// keys, 10^-25.
//
// The hash chooses one of the table's shards, each of which has a lock, and in
// it a segment. A segment is a small hash table of its own: slots that are
// probed linearly, and an arena of words that blocks for the states are cut
// from, in size classes of which less than a fifth is unused. Slots and words
// hold no pointers, so the garbage collector never looks into them. A key in a
// bucket takes about 42 bytes in all, one with three hits in a sliding window
// about 66, whatever the quota; BenchmarkTake and TestBytesPerKey measure it.
//
// # Bounded work
//
// No call does work that grows with the number of keys. A segment grows by a
// quarter at a time until it has 832 keys or 64 KiB of states, then it splits
// in two (eight huge states stay together); what is left of it shrinks, merges
// with its other half again, and goes. So the most that one op copies is one
// segment, 24 KiB of slots and 64 KiB of states, a few microseconds, and at
// times its shard's directory: eight bytes for every segment, more or less.
//
// Every call looks at 4 slots of each shard that it locks and reclaims those
// whose key has expired, and every 16th at 16 slots of another shard, so that
// what nobody asks about any more goes too. A segment knows when its next key
// expires, and costs one look until then. [Store.Sweep] does as much of it as
// it is told to at once. Tables that stay empty and unused for a minute go.
//
// # Full tables
//
// A space holds at most MaxKeys keys, to the key. An op that would count on one
// more first has the expired keys of its segment reclaimed, and those at 64
// slots elsewhere; if that makes no room, the call is answered with
// [github.com/weirhq/weir/store.ErrFull] and counts nothing. Nothing that has
// not expired is ever dropped: that would hand out fresh quota.
//
// # Time
//
// The machine's clock is read once a call. Lengths of time are measured on the
// steady clock, which nobody can set. Calendar windows follow the wall clock
// when it is set, but their keys outlive the period by a minute, and once one
// is reclaimed the store tells no instant before that: a clock that is set back
// frees no quota.
package memstore
