// Package store is the contract between the rules and the places where their
// counters are kept. Package storetest is the same contract as a test suite for
// implementations of [Store].
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/window"
)

// Verb is what a call does with its counters.
type Verb uint8

const (
	Check  Verb = iota // evaluate and count nothing
	Take               // evaluate and, if admitted, count, in one step
	Record             // count, whatever the limit
	Refund             // give hits back
)

var verbNames = [...]string{"check", "take", "record", "refund"}

// String returns the verb as the API writes it.
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
	// Always ops are recorded, whatever the others answer: counters, triggers.
	Always
	// Look ops are evaluated with their hits. They are not counted and never
	// decide.
	Look
)

// Op is what a call does with one key under one limit. The store sets Result.
type Op struct {
	Space *Space
	Limit *window.Compiled

	// Key selects the counter within the space. Stores do not retain the slice.
	Key []byte

	// Together, when not empty, keeps keys with the same Together on one node
	// of a sharded store, so that they are decided in one step there. It is
	// not part of the key. Stores do not retain the slice.
	Together []byte

	// N is the number of hits. With 0 every verb counts nothing and is allowed;
	// a negative number is 0.
	N int64

	// Member is what a distinct limit counts. Stores do not retain the slice.
	Member []byte

	Role Role

	// CountDenied makes a take count the op also when the take is denied, by
	// this op or by another one. It is not used with [Always].
	CountDenied bool

	// Result is the answer.
	Result window.Result
}

// Call is ops that are decided in one atomic step.
type Call struct {
	Verb Verb
	Ops  []Op

	// Err is set by [Store.Do] when the call was not decided: nothing was
	// counted for any of its ops, and their results are not set. It is
	// [ErrRepeated] when two ops have the same key, and an [*OutageError] that
	// names ops when the store could not answer those.
	Err error
}

// Store keeps counters. Its methods are safe for concurrent use.
type Store interface {
	// Do decides calls, which are independent of each other: each in one
	// atomic step at one instant. Two calls that share a key are decided in
	// their order, unless one of them has to be sent again or is spread over
	// several nodes.
	//
	// Do writes the Result of each op, and Err of each call: nil when the
	// call was decided. The ops of a call are evaluated as if in order. In a
	// take an op's Result.Allowed is its own answer: an op that would have
	// fitted reports true even when another one denied, and then nothing was
	// counted for it (but see CountDenied).
	//
	// The calls and their ops are owned by the store until Do returns. The
	// error concerns all calls: the store is closed, or ctx was done before
	// the first of them. Nothing was counted then, and Err is not set.
	Do(ctx context.Context, calls []Call) error

	// Read returns the numbers and the history of op's key under op's limit. It
	// counts nothing.
	Read(ctx context.Context, op *Op) (window.Reading, error)

	// Forget drops the counter of op's key.
	Forget(ctx context.Context, op *Op) error

	// Close releases what the store holds. Calls after it return [ErrClosed].
	// Closing twice is safe.
	Close() error
}

// Single is implemented by stores that have a faster way to decide a single
// op. A store that wraps another one can implement it too.
type Single interface {
	// One runs verb for n hits of one key under limit, as [Store.Do] does for
	// a call with one op that enforces. The error is what Do would return or
	// put into the call's Err.
	One(ctx context.Context, verb Verb, space *Space, limit *window.Compiled, key, member string, n int64) (window.Result, error)
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

// Do decides one call in s. It returns the error of [Store.Do] or of the call.
func Do(ctx context.Context, s Store, verb Verb, ops []Op) error {
	calls := [1]Call{{Verb: verb, Ops: ops}}
	if err := s.Do(ctx, calls[:]); err != nil {
		return err
	}
	return calls[0].Err
}

var (
	// ErrClosed is the error of calls on a closed store.
	ErrClosed = errors.New("store is closed")
	// ErrRepeated is the error of a call with two ops on one key.
	ErrRepeated = errors.New("two ops on the same key in one call")
	// ErrFull is wrapped in an [OutageError]: the space has no room for a new key.
	ErrFull = errors.New("no room for a new key: the most that may be kept (max_keys) is reached; raise it, or wait until keys expire")
)

// OutageError names the ops of a call that a store could not answer, and the
// cause. The caller then follows each rule's policy for outages.
type OutageError struct {
	// Ops are indexes into the call's ops, ascending; nil means all of them.
	Ops []int

	// Reason is why; empty means [ReasonUnknown]. Err has the details.
	Reason Reason
	Err    error
}

// Error returns the cause and how many ops it concerns.
func (e *OutageError) Error() string {
	switch {
	case errors.Is(e.Err, ErrFull):
		return e.Err.Error() // the store was reached
	case e.Ops == nil:
		return fmt.Sprintf("store out of reach: %v", e.Err)
	}
	return fmt.Sprintf("store out of reach for %d ops: %v", len(e.Ops), e.Err)
}

// Cause returns the reason: [ReasonUnknown] when e has none.
func (e *OutageError) Cause() Reason {
	if e.Reason == "" {
		return ReasonUnknown
	}
	return e.Reason
}

// Unwrap returns the cause.
func (e *OutageError) Unwrap() error { return e.Err }
