// Package durable is a store in this process's memory whose counters survive the
// process. Memory answers every call, as package memstore does. What changed goes to
// a directory behind it, once in an interval: a key that changed a hundred times is
// written once.
//
//	call ──► memstore ──► answer
//	             │ keys that changed, every 200 ms
//	             ▼
//	          writer ──► DIR/0000000007.log
//
// # What is lost
//
// [WithSync] sets what a call waits for. After a kill of the process, the counters
// are those of the last interval: what was admitted in one interval can be admitted
// again, and no more. [Always] loses no hit whose answer a caller has seen. After a
// loss of power the same holds, but for [OS], which loses what the operating system
// has not written yet. [Store.Close] loses nothing. A take under several rules can be
// kept in one rule and lost in another.
//
// A key has no name in the directory. It is there as in memory, by its fingerprint:
// the files have the secret with which keys are hashed, so they are readable by their
// owner only.
//
// # Files
//
// A file is a sequence of batches, each with a checksum. A batch has keys with their
// whole states, so the last state of a key is the right one, whatever became of
// those before. Package internal/format has the layout.
//
// A file begins with a round, which writes all keys, a little in each flush, while
// changes are written between them. When the round has ended, that is marked in the
// file, the file is synced, and all older files are removed. When a file has grown by
// as much as the keys need, the next one begins. So the files take at most four times
// what the keys need, and 16 MiB.
//
// A batch that was cut off by a kill or a loss of power is the last one of its file.
// It is not loaded, and the file is continued before it. Where a part in the middle of
// a file is damaged, the batches behind it are loaded all the same: each of them has
// newer states than the ones before it. The keys in the damaged part count from the
// state that was written before. The file is kept under another name for inspection.
//
// # Failures
//
// If a write fails, the batch is cut off the file and written again a second later.
// Changes gather in memory meanwhile, each key once. If so many keys change that they
// take as much room as half of the keys, the store forgets which, and a new file with
// a round replaces the others. The same happens after a sync that failed, because it
// is not known what the disk has then. Nothing that is on the disk is removed before
// what replaces it is synced.
//
// # Time
//
// Each batch has the readings of the store's clocks. The next process goes on from
// there: by the uptime of the machine while that was not started again, and otherwise
// by the wall clock, which counts only if it is ahead. So setting the wall clock
// between two processes frees no quota.
//
// # Invariants
//
// The goroutine of a store alone writes files, and alone calls the writer. It holds
// no lock of the memory during a write. A file is removed only after a later one
// that is whole was synced.
package durable
