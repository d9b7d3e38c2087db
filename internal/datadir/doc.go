// Package datadir is a store in this process's memory that writes its counters to a
// directory, and the commands on such a directory. Package durable is its public part,
// and says what can be lost.
//
// # Files
//
// A file is a sequence of batches, each with a checksum. A batch has keys with their
// whole states, so the last state of a key is the right one, even if earlier ones
// are damaged. Package internal/format has the layout.
//
// A file begins with a round, which writes all keys, a little in each flush, while
// changes are written between them. When the round has ended, the store writes a mark,
// syncs the file, and removes all older files. When a file has grown by
// as much as the keys need, the next one begins. So the files take at most four times
// what the keys need, plus 16 MiB.
//
// A batch that was cut off by a kill or a loss of power is the last one of its file.
// It is not loaded, and the next batch takes its place. If a part in the middle of a file
// is damaged, the batches behind it are still loaded: each of them has newer states than
// the ones before it. The keys in the damaged part count from the
// state that was written before. The file is kept under another name for inspection.
// The header of a file has the secret without which all its keys would be lost, so it is
// copied into a batch whenever the file has doubled.
//
// # Notes
//
// A program can keep notes beside the counters ([hook.Notebook]): an engine keeps what
// waits to be reported to a shared store. A note is written when it has changed and in
// each round. In one flush the notes that were dropped are written before the others, so
// that a kill in between loses a note rather than doubles what it says.
//
// # Calls beside a flush
//
// Calls share locks and processors with a flush. A flush reads a few keys under the lock
// of a shard and then goes on to another shard. It rests for a millisecond after each
// 0.2 ms of work, for at most half of the interval, unless a call waits for it.
//
// # Failures
//
// If a write fails, the batch is cut off the file and written again a second later.
// Changes gather in memory meanwhile, each key once. If so many keys change that they
// take as much room as half of the keys, the store forgets which keys they are, and a
// new file with a round replaces the others. The same happens after a sync that failed,
// because the content of the disk is unknown then. No file is removed before the one
// that replaces it is synced.
//
// # Time
//
// Each batch has the readings of the store's clocks. The clock of the next process
// continues from there. It adds the time that has passed: by the uptime of the machine
// if it has not been rebooted, and otherwise by the wall clock, unless that was set
// back. So setting the wall clock between two processes frees no quota.
//
// # Invariants
//
// Only the goroutine of a store writes files and calls the writer. It holds no lock of
// the memory during a write. A file is removed only after a later one
// that is whole was synced.
package datadir
