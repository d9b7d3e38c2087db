package store

import "context"

// Notebook is an optional interface of a [Store] that keeps notes of a program beside
// its counters, for the next process: bytes under names.
type Notebook interface {
	// Loaded returns a channel that is closed when the notes of the last process are
	// known.
	Loaded() <-chan struct{}

	// Claim calls found for each note of the last process whose name begins with
	// prefix, and that no earlier call found. It reports whether the notes are
	// certainly the latest: false if a part of what was kept could not be read. It
	// must not be called before the notes are loaded. The caller owns data.
	Claim(prefix string, found func(name string, data []byte)) (whole bool)

	// Follow makes the store call changed whenever it is about to write. changed calls
	// keep for each note that has changed since it last did; a note without data is
	// dropped. The store does not own data after keep has returned. Calls of changed come one at
	// a time. end makes it called once more, and then no more.
	Follow(changed func(keep func(name string, data []byte))) (end func())

	// Flush returns when a call of changed that began after the call of Flush was
	// written, as securely as the store writes its counters. It returns an error if
	// that fails, or when ctx is done.
	Flush(ctx context.Context) error

	// Waits reports whether a call of the store is answered only when what it has
	// changed was written.
	Waits() bool
}
