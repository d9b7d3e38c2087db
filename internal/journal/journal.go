// Package journal is the interface between package memstore and packages that write its counters
// elsewhere, such as durable.
package journal

import (
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Secret is the key of the hashes of keys and members in a store with a journal.
// Two stores with the same Secret have the same fingerprints. It must be random, and
// nobody who chooses keys may learn it; see package memstore. The zero Secret is
// valid and not secret.
type Secret [32]byte

// Part is the space that keys belong to, and a limit of theirs.
type Part struct {
	Space *store.Space
	Limit *window.Compiled

	// Names reports whether the words of a key are not its state but its name, which the
	// store has for keys of a limit with Export. They are as the store keeps them.
	Names bool
}

// Times are a store's clocks at one instant, so that another process can go on
// where this one ended. See package memstore about time.
type Times struct {
	Steady, Wall           window.Instant // what the two clocks show
	SteadyFloor, WallFloor window.Instant // no call is dated before these
}

// Reader reads keys with their states. It is not safe for concurrent use.
type Reader interface {
	// Next calls visit for some keys of one space p with their states. visit is called
	// under a lock, must not keep or change the state, and must not call the store.
	// Next reports false at the end. A name is visited after the state of its key, once
	// by a reader of changes.
	Next(visit func(p Part, key uint64, state []uint64)) (ok bool)
}

// Writer puts keys that a journal has visited into a space. It is safe for concurrent use.
type Writer interface {
	// Put makes state the state of key, whatever it was. An empty state, and one that
	// has expired, drop the key. Put keeps to no bound on keys or memory: what was
	// counted is not forgotten.
	Put(key uint64, state []uint64)

	// Name makes words, which a reader has visited, the name of key.
	Name(key uint64, words []uint64)
}

// Journal is the journal of a store.
type Journal interface {
	// AllSecrets returns the secrets of receipts, and UseSecrets sets them.
	AllSecrets() seal.Secrets
	UseSecrets(seal.Secrets)

	// AdoptSecret makes secret the second one, which is valid until an instant, unless it is already.
	AdoptSecret(secret seal.Secret, until window.Instant)

	// Changes returns a reader of the keys that have changed. A store has only one. A
	// pass ends when Next reports false: all keys that had changed when the pass began were
	// visited. The next call of Next begins another pass. A key is visited once after each
	// change, or after several. Its state is empty if it was dropped before it expired. Records of
	// calls are visited after what these calls have changed. Keys that were not visited are kept for later calls.
	Changes() Reader

	// Overflowed reports whether so many keys have changed since Changes last visited
	// them that the store does not know which. A Walk that begins later visits all of
	// them.
	Overflowed() bool

	// Walk returns a reader of all keys that the store has now and that have not
	// expired, which may read newer ones. It ends what Overflowed reports. Keys that
	// change meanwhile are visited with their state before or after the change.
	Walk() Reader

	// Restore returns a writer of keys into the space of p. It makes the space if need
	// be. It returns nil if the store is closed. Restored keys are not marked as
	// changed.
	Restore(p Part) Writer

	// Times reads the clocks. All hits that were counted before are dated no later.
	Times() Times

	// Resume sets the steady clock to t.Steady and raises the floors to those of t. It
	// is called before the first call of the store. t.Wall is ignored. A clock that the
	// caller gave stays as it is.
	Resume(t Times)

	// Refuse makes the calls of the store return err until Refuse(nil). When it returns, no call that has begun
	// before can change a key any more. It is for a store that is being filled, and for the last pass of changes.
	// [store.ErrClosed] is for good, as Close is.
	Refuse(err error)
}
