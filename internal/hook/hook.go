// Package hook has the interfaces that an engine uses of a store in addition to [store.Store].
// All of them are optional.
package hook

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// Hooks are what a store offers. Fields are nil where it has no such thing.
type Hooks struct {
	// Memory is a store in memory that the engine calls instead of the store, with the
	// same effect.
	Memory *memstore.Store

	Keyed     Keyed
	SideStore SideStore
	Timed     Timed
	Adopter   Adopter
}

// Hooked is implemented by stores that name their own hooks.
type Hooked interface {
	// Hooks returns the hooks of a store. of is the store whose Hooks was called. If it
	// embeds this one, Memory is nil, because of has its own Do.
	Hooks(of store.Store) Hooks
}

// Of returns what s offers.
func Of(s store.Store) (h Hooks) {
	if hooked, ok := s.(Hooked); ok {
		return hooked.Hooks(s)
	}
	h.Memory, _ = s.(*memstore.Store)
	h.Keyed, _ = s.(Keyed)
	h.SideStore, _ = s.(SideStore)
	h.Timed, _ = s.(Timed)
	h.Adopter, _ = s.(Adopter)
	return h
}

// HasResults reports whether a call with this error has its results: there is none, or the store only lacks confirmations.
func HasResults(err error) bool {
	if err == nil {
		return true
	}
	out, ok := errors.AsType[*store.OutageError](err)
	return ok && out.Reason == remote.Unconfirmed
}

// Keyed is implemented by stores that keep a secret with their counters. All stores with the
// same counters have the same secret, so each of them accepts the receipts of the others.
type Keyed interface {
	// Secrets returns the secrets under which receipts are valid. The first one is
	// for new receipts. The caller must not change the slice. If again
	// is set, because a receipt is not valid under the secrets that were returned before,
	// a shared store looks for a newer secret first. It returns none while the secret is unknown, for example
	// because the store is unavailable, unless callers had an own secret: the first of these
	// seals receipts until then, and becomes valid in all stores on the same counters.
	Secrets(again bool, own ...[16]byte) [][16]byte

	// RotateSecret makes a new secret for new receipts, in all stores on the same
	// counters. The previous secret stays valid for keep, and older ones become invalid.
	RotateSecret(ctx context.Context, keep time.Duration) error
}

// Adopter is implemented by stores that keep their secret for the next process. A local store adopts the
// secret of the shared store, so that the receipts of an outage stay valid if a process ends in it.
type Adopter interface {
	// AdoptSecret makes secret the second one.
	AdoptSecret(secret [16]byte)
}

// Lister is implemented by stores that can list the keys of a space.
type Lister interface {
	// Keys calls found for some of the keys in the space of op, with their states under
	// its limit at one instant each. It begins behind the position after, nil at first, and
	// returns the position to go on from, nil at the end. Keys that are there all the time
	// are found, in some stores more than once. key is nil where the store does not have
	// the key itself. States can have expired. found must not keep its arguments.
	Keys(ctx context.Context, op *store.Op, after []byte, found func(key []byte, state window.State, now window.Instant)) (next []byte, err error)
}

// ListerOf returns how the keys of s are listed, or nil. It is apart from [Of] because
// programs that list no keys should not link it.
func ListerOf(s store.Store) Lister {
	if l, ok := s.(Lister); ok {
		return l
	}
	if in, ok := s.(interface{ Lister() Lister }); ok { // a store in front of another one
		return in.Lister()
	}
	l, _ := Of(s).SideStore.(Lister) // of a data directory
	return l
}

// Timed is implemented by stores whose calls have a time-out. A caller that may
// make several calls for one decision calls Within first, so that the time-out covers
// all of them.
type Timed interface {
	// Within returns ctx with the deadline of a decision that begins now. Calls with
	// that context return an outage error after the deadline. The caller must call
	// the function when it is done.
	Within(ctx context.Context) (context.Context, context.CancelFunc)
}

// HoldObserver is implemented by observers that also follow holds.
type HoldObserver interface {
	// Ended is called after Decided for a settle, a cancel or a renewal, with the id of the take, if it has found a
	// hold or may have, as its answer was lost.
	Ended(verb store.Verb, id [12]byte)
}

// SideStore stores named blobs of a program with the counters of a store, for the next
// process.
type SideStore interface {
	// Loaded returns a channel that is closed when the blobs of the last process are
	// known.
	Loaded() <-chan struct{}

	// Claim calls found for each blob of the last process whose name begins with
	// prefix, and that no earlier call found. It reports whether the blobs are
	// certainly the latest: false if a part of the files could not be read. It must
	// not be called before the blobs are loaded. The caller owns data.
	Claim(prefix string, found func(name string, data []byte)) (whole bool)

	// Follow makes the store call changed whenever it is about to write. changed calls
	// put for each blob that has changed since its last call; a blob without data is
	// dropped. The store does not use data after put has returned. Calls of changed are
	// sequential. end causes one last call.
	Follow(changed func(put func(name string, data []byte))) (end func())

	// Flush returns when the result of a call of changed that began after the call of
	// Flush was written, as durably as the store writes its counters. It returns an error
	// if that fails, or when ctx is done.
	Flush(ctx context.Context) error

	// Waits reports whether the store answers a call only after it has written what the
	// call changed, unless its context is [Unsynced].
	Waits() bool

	// Now reads the clock of the counters, which the next process continues whatever was done to the wall clock.
	Now() window.Instant
}

type unsynced struct{}

// Unsynced returns ctx for calls of a [SideStore] that need not wait until it has written, because the caller flushes it after
// them.
func Unsynced(ctx context.Context) context.Context { return context.WithValue(ctx, unsynced{}, true) }

// IsUnsynced reports whether ctx is of [Unsynced].
func IsUnsynced(ctx context.Context) bool { return ctx.Value(unsynced{}) != nil }

// Leases are the numbers of a store that leases parts of shared quotas, since it was made.
type Leases struct {
	Keys                     int   // leased now
	Asked, Refused, Lost     int64 // requests for a lease; those that were refused, and had no answer
	Granted, Spent, Returned int64 // hits of leases; what was spent of those that are settled, and what was not
	Dropped                  int64 // leases that the store had lost
	Settled                  int64 // calls that settled a lease
	Direct                   int64 // calls under limits with leases that went to the store
}

// Leaser is implemented by stores that lease.
type Leaser interface {
	Leases() Leases

	// Leased reports whether a check of op is decided from memory now.
	Leased(op *store.Op) bool
}

// LeaseAuditor is implemented by stores that lease, for those that test them.
type LeaseAuditor interface {
	// Audit makes the store read clock instead of the steady clock of the process, and call admitted with the
	// reading that decided each admission from memory, and its hits. It must be called before the store is used.
	Audit(clock func() int64, admitted func(at, hits int64))
}
