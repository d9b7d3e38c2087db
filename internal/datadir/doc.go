// Package datadir is a store in this process's memory that writes its counters to a
// directory, and the commands on such a directory. Package durable is its public part,
// and documents what can be lost.
//
// # Files
//
// A file is a sequence of batches, each with a checksum. A batch has keys with their
// whole states, so the last state of a key is the right one, even if earlier ones
// are damaged. Package internal/format has the layout.
//
// A file is a segment of a log. It begins with a compaction, which writes all keys, a few in
// each flush, between the changes. When the compaction is complete, the store writes a mark,
// syncs the file and removes all older files. When a file has grown by as much as the keys
// and blobs need, the next one begins, so the files take at most four times what these need, plus
// 16 MiB.
//
// A batch that was cut off by a kill or a loss of power is the last one of its file.
// It is not loaded, and the next batch overwrites it. If a part in the middle of a file is
// damaged, the batches after it are still loaded, because each of them has newer states than
// the ones before it. The keys in the damaged part continue from the state that was written
// before. The file is kept under another name for inspection. Without the secret in the header
// all keys of a file would be lost, so the header is copied into a batch each time the file has
// doubled in size.
//
// # Blobs
//
// A program can store named blobs with the counters ([hook.SideStore]): an engine stores
// what it still has to report to a shared store. A blob is written when it has changed and in
// each compaction. A flush writes the blobs that were dropped before the others, so that a
// kill in between loses a blob instead of storing its content twice.
//
// # Calls during a flush
//
// Calls share locks and CPUs with a flush. A flush reads a few keys under the lock of a shard
// and then continues with another shard. It pauses for a millisecond after each 0.2 ms of
// work, for at most half of the interval in total, unless a call waits for it.
//
// # Failures
//
// If a write fails, the batch is cut off the file and written again a second later.
// Meanwhile changes accumulate in memory, each key once. If so many keys change that they
// take as much memory as half of all keys, the store stops tracking which keys they are, and a
// new file with a compaction replaces the others. The same happens after a sync that failed,
// because the content of the disk is unknown then, and when another program has removed or
// changed the open file. A single flush completes such a compaction, because memory does not
// track any more which changes the files lack: when a flush succeeds, they lack nothing. No file
// is removed before the one that replaces it is synced.
//
// A directory that takes the place of the locked one, such as a backup that is restored too early,
// is not written: writing fails until the locked one is back.
//
// # Time
//
// Each batch has the readings of the store's clocks. The clock of the next process
// continues from there, plus the time that has passed: by the machine's uptime if it has not
// been rebooted, and otherwise by the wall clock, unless that was set back. Setting the wall
// clock between two processes therefore frees no quota.
//
// # Invariants
//
// Only the goroutine of a store writes files and calls the writer. It holds no lock of
// the memory during a write. A file is removed only after a later,
// complete one was synced.
package datadir
