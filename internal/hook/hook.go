// Package hook has what an engine asks of a store beside the calls of [store.Store]. All
// of it is optional.
package hook

import (
	"context"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
)

// Hooks are what a store offers. Fields are nil where it has no such thing.
type Hooks struct {
	// Memory is a store in memory that the engine calls in place of the store, to the
	// same effect.
	Memory *memstore.Store

	Keyed    Keyed
	Notebook Notebook
	Timed    Timed
}

// Hooked is implemented by stores that name their own hooks.
type Hooked interface {
	// Hooks returns the hooks. of is the store that is asked. It is another one if it
	// embeds this one: then Memory is nil, because the other one has a Do of its own.
	Hooks(of store.Store) Hooks
}

// Of returns what s offers.
func Of(s store.Store) (h Hooks) {
	if hooked, ok := s.(Hooked); ok {
		return hooked.Hooks(s)
	}
	h.Memory, _ = s.(*memstore.Store)
	h.Keyed, _ = s.(Keyed)
	h.Notebook, _ = s.(Notebook)
	h.Timed, _ = s.(Timed)
	return h
}

// Keyed is implemented by stores that keep a secret beside their counters. All stores on
// the same counters have the same secret, so that each of them accepts the receipts of
// the others.
type Keyed interface {
	// Secrets returns the secrets under which receipts are valid. The first one is
	// for new receipts. It returns none while the secret is not known, for example
	// because the store is out of reach. The caller must not change the slice. With
	// again, a store that instances share looks for a newer secret first: a receipt
	// is not valid under those that were returned before.
	Secrets(again bool) [][16]byte

	// RotateSecret makes a new secret for new receipts, in all stores on the same
	// counters. The secret of before is valid for keep, and the one before that no
	// more.
	RotateSecret(ctx context.Context, keep time.Duration) error
}

// Timed is implemented by stores whose calls have a time-out. A caller that may
// ask several times for one decision calls Within first, so that the time-out
// bounds all of it.
type Timed interface {
	// Within returns ctx with the end of a decision that begins now. Calls with
	// that context meet an outage when the time is over. The caller calls the
	// function when it is done.
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// Notebook keeps notes of a program beside the counters of a store, for the next
// process: bytes under names.
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
