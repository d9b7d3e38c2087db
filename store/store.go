// Package store is the contract between the rules and the places where their
// counters are kept. Package storetest is the same contract as a test suite;
// whatever implements [Store] runs it.
package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weirhq/weir/window"
)

// Verb is what a request does with its counters.
type Verb uint8

const (
	Check  Verb = iota // look only
	Take               // look and, if admitted, count, in one step
	Record             // count whatever the limit
	Refund             // give hits back
)

var verbNames = [...]string{"check", "take", "record", "refund"}

// String is the verb as the API writes it.
func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return "unknown"
}

// Role is the part that an op has in a take.
type Role uint8

const (
	// Enforce ops decide together: each is counted when all of them admit,
	// none when one denies.
	Enforce Role = iota
	// Shadow ops are counted when they admit themselves, and never decide.
	Shadow
	// Always ops are recorded, whatever the others say: counters, triggers.
	Always
)

// Space is where the keys of one rule live. Two spaces with equal IDs are the
// same space. A Space must not be changed or copied after its first use.
type Space struct {
	// ID is the identity of the counters: as long as it stays the same, they
	// are kept.
	ID string

	// Name is the rule's name, for people: it may be part of a key's name in
	// a shared store. Spaces with equal IDs have equal names.
	Name string

	// MaxKeys bounds the keys that a store in memory keeps; 0 means
	// [DefaultMaxKeys].
	MaxKeys int64

	home atomic.Pointer[any]
}

// Home is what a store has left here to find the space's keys by, or nil. It
// is a hint: another store may have left it, or the same one long ago.
func (s *Space) Home() any {
	if h := s.home.Load(); h != nil {
		return *h
	}
	return nil
}

// SetHome leaves h for the next call with this space.
func (s *Space) SetHome(h any) { s.home.Store(&h) }

// DefaultMaxKeys is the most keys a space holds when it does not say.
const DefaultMaxKeys = 10_000_000

// Op is one limit asked about one key. Do fills in Result.
type Op struct {
	Space *Space
	Limit *window.Compiled

	// Key is counted apart within the space. Stores do not keep the slice.
	Key []byte

	// Together, when not empty, keeps keys with the same Together on one node
	// of a sharded store, so that they are decided in one step there. It does
	// not tell keys apart. Stores do not keep the slice.
	Together []byte

	// N is the number of hits; 0 only looks. Negative is taken as 0.
	N int64

	// Member is what a distinct limit counts. Stores do not keep the slice.
	Member []byte

	Role Role

	// CountDenied asks that a take which is denied, by this op or by another
	// one, is recorded all the same. Not with [Always].
	CountDenied bool

	// Result is the answer.
	Result window.Result
}

// Store keeps counters. Its methods are safe for concurrent use.
type Store interface {
	// Do runs verb for all ops in one atomic step at one instant, and writes
	// each op's Result. Ops are evaluated as if in order, and are owned by
	// the store until Do returns. In a take an op's Result.Allowed is its own
	// answer: an op that would have fitted says so even when another one
	// denied, and then nothing was counted for it (but see CountDenied).
	//
	// When ctx is done before the step, nothing is counted and its error is
	// returned. Two ops on the same key are refused with [ErrRepeated]. An
	// [*OutageError] names the ops that could not be answered; nothing was
	// counted for any op, and results are not set.
	Do(ctx context.Context, verb Verb, ops []Op) error

	// Peek returns a copy of the state of op's key, empty when there is none,
	// and the store's instant.
	Peek(ctx context.Context, op *Op) (window.State, window.Instant, error)

	// Forget drops the state of op's key.
	Forget(ctx context.Context, op *Op) error

	// Close releases what the store holds. Calls after it answer [ErrClosed];
	// closing twice is safe.
	Close() error
}

var (
	// ErrClosed answers calls on a closed store.
	ErrClosed = errors.New("store is closed")
	// ErrRepeated answers a call with two ops on one key.
	ErrRepeated = errors.New("two ops on the same key in one call")
	// ErrFull is inside an [OutageError]: the space has no room for a new key.
	ErrFull = errors.New("no room for a new key: max_keys are there already; raise it, or wait until some expire")
)

// OutageError says which ops a store could not answer, and why. The caller
// then follows each rule's policy for outages.
type OutageError struct {
	// Ops are indexes into the call's ops, ascending; nil means all of them.
	Ops []int
	Err error
}

func (e *OutageError) Error() string {
	switch {
	case errors.Is(e.Err, ErrFull):
		return e.Err.Error() // the store was reached
	case e.Ops == nil:
		return fmt.Sprintf("store out of reach: %v", e.Err)
	}
	return fmt.Sprintf("store out of reach for %d ops: %v", len(e.Ops), e.Err)
}

// Unwrap is the cause.
func (e *OutageError) Unwrap() error { return e.Err }
