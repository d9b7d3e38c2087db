// Package table maps hashes to states of a few words, for package memstore. A
// [Table] knows neither clocks nor limits: the caller passes what its methods need
// of those. It has no locks either: the caller must lock it.
//
//	Table ──► directory ──► segment ──► slot ──► block
//	          by hash       ≤ 416 keys  a key    a state of 4 words or more
//
// A table is a directory of segments. The first bits of a hash select an entry of
// the directory, and so a segment, which is a small hash table with linear probing.
// A slot of 32 bytes holds a key and up to three words of state, so both are found
// with one cache miss. A larger state is in a block of its segment's arena. Neither slots nor blocks hold pointers, so the garbage collector does not scan them.
//
// # Growth
//
// A segment grows by a quarter at a time until it has 416 keys or 64 KiB of
// blocks. Then it splits in two by one more bit of the hash, and at times the
// directory doubles. This is extendible hashing (Fagin, Nievergelt, Pippenger and
// Strong, 1979). When a sweep leaves a segment that has become small, the segment
// shrinks, or merges with the segment that it was split from. So a call copies at
// most one segment, which is 16 KiB of slots and 64 KiB of blocks, and the
// directory, which has about 32 bytes for each segment. A segment of up to eight
// huge states is not split.
//
// # Invariants
//
//   - The directory has 1<<depth entries. A segment of depth d is in
//     1<<(depth-d) neighbouring entries, which share the first d bits, and all
//     its keys share those bits.
//   - An entry's slots are its segment's slots: whoever replaces a segment's
//     slots writes its entries again.
//   - A segment that has slots has a free one, so every search ends.
//   - Every key can be reached by probing from its own slot without meeting a
//     free one. Removing a key moves others back to keep this true.
//   - A [Ref] is good until the table changes: Put, Remove, Reclaim and Sweep
//     may move any slot or block. [Ref.Resize] and writes to the words that
//     [Ref.State] returned move nothing.
//   - No key expires before the earliest instant of its segment's cycle, and
//     none in the table before that of the table's cycle; see cycle.
package table
