// Package memstore keeps counters in this process's memory. It is the default
// store of package weir.
//
//	space ──► keyspace ──► shard ──► table ──► state
//	by ID     a space      by hash   by hash   a few words
//	                         │
//	                       stripe: a lock for the same shard of every keyspace
//
// A keyspace holds the keys of one [store.Space]. The store does not keep the keys
// themselves: it identifies a key by a 64-bit hash with a random seed that never
// leaves the process. If two keys have the same hash, they share a counter. Then
// they can be denied early, and are never admitted over their quota. Among n keys
// this happens with a probability of about n²/2^65, which for ten million keys is
// 3 in a million. Without the seed such keys cannot be found.
//
// The hash selects one of the keyspace's shards. Each shard has a table
// (package internal/table) of hashes and states. The store has as many stripes as a
// keyspace has shards. A stripe is the lock of the shards with its number, one of each
// keyspace. The hash selects the same number in all keyspaces. So a call of several rules
// for one key locks once. To lock a shard means to lock its stripe. A state of up to three words is
// found with one cache miss. That is enough for a bucket, for a fixed or calendar
// window, and for three hits of a sliding window. Tables hold no pointers to
// states, so the garbage collector does not scan them. A key takes about 45 bytes.
// A state of more than three words takes 9 to 15 bytes more for each of its
// words. TestBytesPerKey measures this.
//
// # Hot keys
//
// The denial of a take of a key that is called often needs no lock: while the window
// is exactly full, the answer stays the same but for the waits; see hot.go. Other
// calls, and calls with several ops, lock the shard. So does every call on a store
// with a clock that the caller gives.
//
// A shard gets room for 32 hot keys when two of the calls that sweep it have the same
// key, one after the other and within a millisecond. That takes 776 bytes, and a hot key 64.
//
// # Journal
//
// With [WithJournal] the store tracks which keys change, and a program such as package
// durable asks for them and writes them elsewhere. Keys are then hashed with a secret
// that the next process gets, too.
//
// # Bounded work
//
// The work of a call does not grow with the number of keys. Tables grow and shrink
// by segments of at most 416 keys, so an op copies at most 16 KiB of slots and
// 64 KiB of larger states, which takes some microseconds. Now and then it also
// copies its shard's directory of segments.
//
// Calls reclaim the expired keys. Every 64th call that locks a stripe, and the first
// call that locks a shard in each millisecond of the machine's clocks, looks at 32 slots
// in the shards of its keys and at 32 in another shard. In a
// shard where many keys have expired it goes on, up to 1024 slots. In a shard
// where none can have expired it looks at one. [Store.Sweep] reclaims without
// waiting for calls. A keyspace that stays empty and unused for a minute is
// dropped.
//
// # Full spaces
//
// A space holds at most [store.Space.MaxKeys] keys, exactly. Before an op adds a
// key to a full space, the store reclaims the expired keys of the op's segment and
// of 64 slots elsewhere. If that frees none, the call is refused with an outage
// whose cause is [store.ErrFull], and counts nothing. The store never drops a key
// that has not expired, because the key would then get fresh quota.
//
// The memory of all spaces together can be bounded, too ([WithMaxBytes]). Each call
// adds to one counter what the tables of its shards have grown or shrunk by. New
// keys are refused from nine tenths on, records of calls with an idempotency key and keys of limits that
// callers state from three quarters on, and states that must grow at the full bound.
// Hot keys, at most 4 KiB a shard, are not part of the sum. The error of a refused
// call says when the first key expires: each shard knows a bound for that, and they
// are asked at most ten times a second.
//
// # Time
//
// Lengths of time are measured on the monotonic clock, here called steady, which
// cannot be set. Calendar windows follow the wall clock, and also its changes.
// Only calls on calendar windows read the wall clock, because that is half of the
// cost of a reading.
//
// A call reads the clock once, before it locks its shards. If another call with a
// later reading was decided in one of these stripes meanwhile, the first call reads
// the clock again under its locks. So a call is dated with one instant between its
// start and its end, and never before a hit that it sees. A bucket that had room
// all the time does not deny a call because the call's goroutine was descheduled.
// A take of a hot key that read the clock before the denial that it would repeat
// is decided under the lock, because the state may have been another one then.
//
// A clock that the caller gives ([WithClock]) is read only once, and its instants
// stand.
//
// When a key is reclaimed, the instants of its hits are forgotten. From then on no
// call is dated before the instant at which that key expired. The clock has a
// floor for this, which is checked under the locks. A key of a calendar window is
// kept for a minute after its period, so that setting the wall clock back by a
// small step frees no quota and does not reach the floor. If the wall clock is set back by
// more than a day, it was wrong before, and the floor is set back with it. With a clock that the
// caller gives, every key is kept for an hour after it has expired.
//
// # Invariants
//
// Locks. A call locks the stripe of each of its keys once. While it has locked one, it
// waits for another one only in the order of their numbers; else it tries the lock, and
// if that is taken, it unlocks all and locks them in order. keyspaces.mu is not locked
// while a stripe is locked, and no stripe is locked under it. A call that sweeps other
// shards than its own only tries the locks of their stripes, unless it has locked the
// stripe for another keyspace. So no two calls wait for each other.
//
// A call goes through these steps, Decide with one op and decideMany with several:
//
//  1. Locate: find the keyspace of each op without a lock (see index), or make
//     it; order the slots, so that those of one shard are neighbours; read the clock.
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
// Slots. The find of an opSlot is good until its shard's table changes: another op of
// the call in the same shard, a key added, removed or reclaimed, a sweep. An op
// that shares its shard finds its key again before it is evaluated. A state that
// is changed in place moves nothing.
//
// Hot keys. A hot key holds the denial of a key, and answers takes with it without a
// lock, for as long as the denial certainly holds. The state stays in the table. The
// call that changes the state drops the answer under the shard's lock before it
// unlocks; a call of several ops drops all answers before it changes the first state.
//
// Expiry. keyspace.keys is never less than the number of keys in the shards. A
// key is dropped only when it has expired at a horizon, and the floor is raised
// to that horizon before its shard is unlocked.
package memstore
