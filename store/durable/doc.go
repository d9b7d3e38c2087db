// Package durable is a store in this process's memory whose counters survive the
// process. Memory answers every call, as package memstore does. Every
// interval, a flush writes the keys that changed to a directory: a key that changed a
// hundred times is written once.
//
//	call ──► memstore ──► answer
//	             │ keys that changed, every 200 ms
//	             ▼
//	          writer ──► DIR/0000000007.log
//
// # What is lost
//
// [WithSync] sets what a call waits for. A kill of the process loses the hits that were
// counted since the last successful flush began, at most one interval and a flush: they
// can be admitted again, and no more. [Always] loses no hit whose answer a caller has
// seen. A loss of power loses as much as a kill, except with [OS]: it also loses what
// the operating system has not written yet. [Store.Close] loses nothing. A take under
// several rules can be kept in one rule and lost in another.
//
// Counters are kept under fingerprints of their keys, as in memory. Only the keys of rules that are exported, and
// those of hits that wait to be reported to another store, are in clear. The files contain the secret with which keys
// are hashed, so they are readable by their owner only.
//
// The files take at most four times what the keys need, plus 16 MiB. The commands of
// weir data check, show, compact and back up a directory. Package internal/datadir documents the
// layout of the files and the handling of failures.
package durable
