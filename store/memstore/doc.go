// Package memstore keeps counters in this process's memory. It is the default
// store of package weir.
//
//	space ──► keyspace ──► shard ──► table ──► state
//	by ID     a space      a lock    by hash   a few words
//
// A key is known by one 64-bit hash of it under a random seed that never leaves
// the process. The key itself is not kept. Two of n keys have the same hash, and
// then share a counter, with a probability of about n²/2^65: for ten million keys
// 3 in a million. Such keys cannot be found without the seed, and are denied
// early, never admitted over their quota.
//
// The hash chooses one of the space's shards, each of which has a lock and a
// table (package internal/table) of hashes and states. A state of up to three
// words is found with one cache miss: all that a bucket, a fixed or a calendar
// window needs, and three hits of a sliding window. Tables hold no pointers to
// states, so the garbage collector does not scan them. A key takes about 45
// bytes, and a larger state 10 to 14 more for each of its words;
// TestBytesPerKey measures it.
//
// # Bounded work
//
// No call does work that grows with the number of keys: tables grow and shrink
// by segments of at most 416 keys, so that the most that one op copies is 16 KiB
// of slots and 64 KiB of larger states, some microseconds, and at times its
// shard's directory of segments.
//
// Expired keys are reclaimed by the calls themselves. Each 64th call to a shard,
// and the first one in each millisecond, looks at 32 slots there and at as many
// in another shard, and goes on, up to 1024, where it finds many that have
// expired. Where no key has expired it looks at one. [Store.Sweep] does as much
// of it as it is told to at once. Keyspaces that stay empty and unused for a
// minute are dropped.
//
// # Full spaces
//
// A space holds at most MaxKeys keys, to the key. An op that would count on one
// more first has the expired keys of its segment reclaimed, and those at 64
// slots elsewhere. If that makes no room, the call is refused with
// [github.com/weirhq/weir/store.ErrFull] and counts nothing. A key that has not
// expired is never dropped: that would hand out fresh quota.
//
// # Time
//
// Lengths of time are measured on the steady clock, which cannot be set.
// Calendar windows follow the wall clock, also when it is set. Only they read
// it, because that is half of what a reading costs.
//
// A call reads the clock once, before it locks. If a call with a later reading
// was decided in one of its shards meanwhile, it reads the clock again under its
// locks. So every call is dated with one instant between its start and its end,
// and never before a hit that it sees: a bucket which had room at all times does
// not deny a call because its goroutine was descheduled. A clock that the caller
// gives ([WithClock]) is read once; there the instants are the caller's.
//
// A reclaimed key has forgotten when it was used. So from then on no call is
// dated before the instant at which that key expired: the clock has a floor,
// which is checked under the locks. Keys of calendar windows outlive their
// period by a minute, so that the small steps by which a wall clock is set back
// neither free quota nor meet the floor. With a clock that the caller gives, all
// keys live an hour longer.
//
// # Invariants
//
// Locks. A call locks the shards of its keys in the order of their keyspaces'
// numbers and, within one, of their hashes; each once. keyspaces.mu
// is not locked while a shard is locked, and no shard is locked under it. A call
// that sweeps other shards than its own only tries their locks. So no two calls
// wait for each other.
//
// A call goes through these steps:
//
//  1. Locate: find the keyspace of each op without a lock (see index), or make
//     it; order the places; read the clock.
//  2. Lock, and date the call.
//  3. Find each key, and reserve: an op that may add a key counts it in
//     keyspace.keys first. If a keyspace is full, give back what was reserved
//     and refuse the call.
//  4. Dead: if a keyspace was dropped meanwhile, unlock and begin again. A
//     keyspace is dropped by marking it dead and then asking for its keys, so a
//     call that has reserved one and does not find the mark keeps it alive. A
//     call that reserved nothing finds nothing to change there.
//  5. Evaluate. An op that adds its key uses up its reservation; one that
//     removes a key gives back its count.
//  6. Release what was not used, sweep a few slots, unlock.
//
// Slots. A place's find is good until its shard's table changes: another op of
// the call in the same shard, a key added, removed or reclaimed, a sweep. An op
// that shares its shard finds its key again before it is evaluated. A state that
// is changed in place moves nothing.
//
// Expiry. keyspace.keys is never less than the number of keys in the shards. A
// key is dropped only when it has expired at a horizon, and the floor is raised
// to that horizon before its shard is unlocked.
package memstore
