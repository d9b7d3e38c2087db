// Package memstore keeps counters in this process's memory. It is the store
// that weir uses unless it is told otherwise.
//
//	space ──► table ──► shard ──► directory ──► slot ──► larger state
//	by ID     a space   a lock    by hash       a key    a block of words
//
// A key is known by one 64-bit hash of it under a random seed that never leaves
// the process; the key itself is not kept. Two of n keys share a fingerprint,
// and then a counter, with a probability of about n²/2^65: for ten million keys
// 3 in a million. Nobody can look for such keys without the seed, and the two
// are denied early, never admitted over their quota.
//
// The hash chooses one of the table's shards, each of which has a lock, and in
// it a segment: a small hash table of its own, whose slots are probed linearly.
// A slot of 32 bytes holds the fingerprint and up to three words of state: all
// that a bucket, a fixed or a calendar window needs, and three hits of a sliding
// window. One access to memory finds both. A larger state is in a block of the
// segment's arena, in size classes of which less than a fifth is unused. Neither
// holds pointers, so the garbage collector never looks into them. A key takes
// about 45 bytes in all, and a larger state 10 to 14 more for each of its words;
// TestBytesPerKey measures it.
//
// # Bounded work
//
// No call does work that grows with the number of keys. A segment grows by a
// quarter at a time until it has 416 keys or 64 KiB of blocks, then it splits
// in two (eight huge states stay together); what is left of it shrinks, merges
// with its other half again, and goes. So the most that one op copies is one
// segment, 16 KiB of slots and 64 KiB of blocks, some microseconds, and at
// times its shard's directory: 32 bytes for every segment, more or less.
//
// Expired keys are reclaimed by the calls as they go: each 64th one to a shard,
// and the first one in each millisecond, looks at 32 slots there and at as many
// in another shard, and goes on, up to 1024, where it finds many that have
// expired. A shard and a segment know when their next key expires, and cost one
// look until then. [Store.Sweep] does as much of it as it is told to at once.
// Tables that stay empty and unused for a minute go.
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
// The machine's clock is read once a call that does not sweep; the time of day,
// half of what that costs, only for calendar windows. Lengths of time are measured on the
// steady clock, which nobody can set. Calendar windows follow the wall clock
// when it is set, but their keys outlive the period by a minute, and once one
// is reclaimed the store tells no instant before that: a clock that is set back
// frees no quota.
package memstore
