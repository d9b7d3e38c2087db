// Package store defines [Store], the interface of the places where counters are
// kept: package memstore keeps them in memory, package redisstore in Redis.
// Package storetest tests implementations of Store.
//
// A store gets a [Call]: a [Verb] and one [Op] for each counter that a request
// concerns. It decides all ops of the call in one atomic step, and writes a
// [window.Result] into each.
package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/window"
)

// Verb is what a call does with its counters.
type Verb uint8

// The order matters: the first two ask the limit.
const (
	Check   Verb = iota // evaluate and count nothing
	Take                // evaluate and, if admitted, count
	Record              // count without asking the limit
	Refund              // give hits back
	Settle              // end a hold at what it really cost
	Cancel              // give back what one take counted
	Renew               // keep a hold alive
	Set                 // make N the hits that count, all of them dated now
	Unban               // end a ban
	Reserve             // hold a part of what remains, for a caller that spends it without asking
)

var verbNames = [...]string{"check", "take", "record", "refund", "settle", "cancel", "renew", "set", "unban", "reserve"}

// CanRepeat reports whether a request for v can have an idempotency key.
func (v Verb) CanRepeat() bool { return v == Take || v == Record || v == Refund || v == Settle }

// NeedsReceipt reports whether v is about the holds of an earlier take: it is Settle,
// Cancel or Renew.
func (v Verb) NeedsReceipt() bool { return v >= Settle && v <= Renew }

// String returns the verb as the API writes it.
func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return "unknown"
}

// Role is the part that an op has in a take. The other verbs ignore it.
type Role uint8

const (
	// Enforce ops decide together: all of them are counted if each admits its
	// hits, and none if one denies.
	Enforce Role = iota
	// A Shadow op is counted if it admits its hits, whatever the other ops
	// answer. It never affects other ops.
	Shadow
	// An Always op is recorded, whatever the other ops answer: it is the op of
	// a counter or a trigger.
	Always
	// A Look op is evaluated and not counted, unless it has CountDenied. It
	// never affects other ops.
	Look
)

// Op is the part of a call that concerns one key under one limit. The caller sets
// all fields except Result, which the store sets.
type Op struct {
	Space *Space
	Limit *window.Compiled

	// Key selects the counter within the space. It may be empty. Stores do not
	// retain the slice.
	Key []byte

	// Together, if not empty, makes a store of several nodes keep all keys with
	// the same Together on one node, so that it can decide them in one step. It
	// is not part of the key: ops on one key always have the same Together.
	// Stores do not retain the slice.
	Together []byte

	// N is the number of hits. An op with N = 0 is not counted by any verb, and
	// is always allowed. A negative N means 0. In a settle N is what the hold
	// really cost, 0 too, and a negative N means what was held. A renewal
	// ignores it. In a reserve N is the most to hold; the store lowers it, see [Hold].
	N int64

	// Member is the member that a limit with measure [window.Distinct] counts.
	// Other limits ignore it. Stores do not retain the slice.
	Member []byte

	Role Role

	// CountDenied makes a take record the op when this op or another one denies
	// the take. It has no effect with [Always].
	CountDenied bool

	// UpTo makes a take ask for no more hits than fit. Before the ops are decided, the
	// store lowers the N of each op with UpTo to the least that remains ([window.Result])
	// under one of those that have the role Enforce and do not count distinct members, but
	// not below 1. So N is the number of hits that a take has counted, if it was admitted.
	UpTo bool

	// Hold names the take whose hold this is; nil: none. The ops of one take share
	// the ID. See [Hold].
	Hold *Hold

	// Result is the answer of this op alone. It is set if the call's Err is nil.
	Result window.Result
}

// Hold is the part of an op that is about holds. It depends on the verb what the
// caller sets, and what the store sets.
//
//   - In a take the caller sets ID. Under a limit whose takes hold
//     ([window.Limit.HoldLength]) the hits are held with this ID, if they are
//     counted at all. With a zero ID nothing is held.
//   - In a record a caller sets all fields to record hits that are held already,
//     by a store that is unavailable. With a zero ID they are final. A hold that the key
//     has already stays as it is.
//   - Settle, cancel and renew are about the hold ID. A cancel also gives back the
//     N hits of ops under limits whose takes do not hold, which were counted at the
//     instant At, but only if a hold of the call was found, or if the op is Sure, and
//     only hits that are certainly still counted.
//   - In a reserve the caller sets ID, Least and Part, and an At and an End that are as far apart as the
//     hold should last. See below.
//   - Check and refund ignore all of this.
//
// With every verb the store sets Decided.
//
// # Reserve
//
// A reserve is for a caller that wants to admit hits without asking the store for each. All ops
// have a hold with one ID, which no other call has had; their Role, CountDenied and UpTo have no
// effect. The store first lowers the N of each op to
//
//	min(N, max(Least, left/Part))
//
// where left is the least that remains under any of the ops. Then it holds N hits of every op if
// all of them fit, and nothing otherwise: RetryAfter is the wait until N hits fit. If a hold was
// made, Held is set, and At and End are its bounds by the store's clock. At is the instant of the
// decision. End can be earlier than the caller asked, because a hold in a fixed, calendar or
// aligned window ends with the period.
//
// Until the hold ends its hits count in full. A [Settle], with what the caller has spent as N, 0
// too, gives back the rest, and what was spent counts from the instant of the settle. A hold that is
// not settled counts in full from End. A settle after End, or a second one, finds no hold and
// changes nothing. So if the caller spends its hits only before End and settles only after the last
// of them, no window has more hits than its quota, whatever is lost, late or sent twice
// (window/reserve.go has the proof). The caller should stop so long before End that a settle still
// arrives in time, because hits that are not given back count although nobody has spent them. A
// [Cancel] is not for reserves: it would also look for hits that were counted without a hold.
//
// A reserve never dates hits ahead of the store's clock, and moves no key's clock. To other calls
// its hold is like any other: a [window.Reading] counts it, and [Set] does nothing while it is
// alive. But no renewal moves it. A key has at most 1,000 holds. A limit that cannot reserve
// ([window.Compiled.CanReserve]) denies with [window.Never].
type Hold struct {
	window.Hold

	// Decided is the instant at which the op was decided, by the store's clock for
	// the op. It is set if the call's Err is nil.
	Decided window.Instant

	// Sure, in a cancel, states that the take was counted. In a settle it states that N is at most what is held: then the
	// settle only gives back.
	Sure bool

	// NoStrike, in a record, makes hits past the quota no strike ([window.Ban]).
	NoStrike bool

	// Least and Part, in a reserve, are the fewest hits that are worth a hold, and the number of callers that
	// what remains is divided among. Values below 1 mean 1.
	Least, Part int64
}

// LowerUpTo lowers the N of ops, which are those of a take or a reserve, as UpTo and [Hold] state. It is for
// stores, which call it before they decide the call, with the results of a check of these ops; or
// afterwards, with those of the call.
func LowerUpTo(v Verb, ops []Op) {
	left, all := int64(math.MaxInt64), v == Reserve
	for i := range ops {
		op, r := &ops[i], &ops[i].Result
		switch {
		case op.N <= 0 || !all && (!op.UpTo || op.Role != Enforce) || op.Limit.Measure == window.Distinct || r.Quota == window.Unlimited:
		case r.Banned && (!r.Struck || op.CountDenied): // where Before is not of the take
			left = 0
		default:
			left = min(left, max(r.Quota-r.Before, 0))
		}
	}
	for i := range ops {
		switch op := &ops[i]; {
		case op.N <= 0:
		case all && op.Hold != nil:
			op.N = min(op.N, max(op.Hold.Least, left/max(op.Hold.Part, 1), 1))
		case op.UpTo && !all:
			op.N = max(min(op.N, left), 1)
		}
	}
}

// Call is a list of ops that a store decides in one atomic step.
type Call struct {
	Verb Verb
	Ops  []Op

	// Once, if it is not nil, makes the call idempotent: it is the op of a record of the call, which the store
	// keeps with its counters and writes in the step that decides the call. If the store has the record
	// already, it counts nothing, and gives the ops the results, hits, and holds of the first call; an op whose
	// key the first call did not have gets the zero Result, which no op that was decided has.
	//
	// Space and Key name the record. Member is a digest of the request, of 16 bytes: under the
	// record of another request Err is [ErrConflict]. N is for how many microseconds the record is kept, at most
	// the length of Limit, which is of a fixed window without a quota. If N is 0 the store only looks for the
	// record, and decides nothing without it. The store sets Result.Before to 1 if it had the record, and
	// else to 0. It keeps records for its calls that count, in the order in which it decides them, and none of a
	// take that an op has denied, and which has counted and banned nothing: such a call is decided anew, and
	// callers who are denied cannot fill the store.
	//
	// The Role is Look if the caller denies a take whatever its ops answer. The record tells whether
	// the first call was a take that was denied, by the caller or by an op with the role Enforce, also if the call that has
	// found it lacks that op: then Result.Allowed is false, and RetryAfter the longest of their waits,
	// [window.Never] if the caller denied.
	//
	// On a cluster the record is in the slot of the call's first op, and each further slot has
	// one of its part of the call. A reserve has no record: its hold ends by itself.
	Once *Op

	// Err is set by [Store.Do]. It is nil if the call was decided. Otherwise
	// nothing was counted for any of the ops, and their results are not set, but for some outages. Err
	// is [ErrRepeated] if two ops have the same key in the same space, [ErrConflict], and an
	// [*OutageError] if the store could not answer. Over a network the answer can
	// be lost after the call was counted: then Err is an [*OutageError] that is not
	// Uncounted, or the error of the context.
	Err error
}

// Store keeps counters. Its methods are safe for concurrent use.
type Store interface {
	// Do decides calls. Each call is decided on its own, in one atomic step at
	// one instant. Two calls that share a key are decided in their order, unless
	// one of them has to be sent again or is spread over several nodes.
	//
	// Do writes the Err of each call and the Result of each op. The ops of a
	// call are evaluated as if one after the other. In a take, an op's
	// Result.Allowed is the answer of this op alone: it is true for an op that
	// fits even if another op denies, and the op is then counted only with
	// CountDenied. An op that denies a take is a strike where its limit bans,
	// whatever its role, and whether or not another op denies too.
	//
	// The store owns the calls and their ops until Do returns. Do returns an
	// error if the store is closed, or if ctx is done before the first call. Then
	// nothing was counted, and the Err of the calls is not set.
	Do(ctx context.Context, calls []Call) error

	// Read returns the numbers and the history of op's key under op's limit. It
	// counts nothing. It ignores op's N, Member and Role, and does not set
	// Result.
	Read(ctx context.Context, op *Op) (window.Reading, error)

	// Forget drops the counter of op's key. A key without a counter is no error.
	Forget(ctx context.Context, op *Op) error

	// Close releases the store's resources. Later calls return [ErrClosed].
	// Closing twice is safe.
	Close() error
}

// Do decides one call in s, and sets the results of ops. It returns the error of
// [Store.Do] or the call's Err.
func Do(ctx context.Context, s Store, verb Verb, ops []Op) error {
	calls := [1]Call{{Verb: verb, Ops: ops}}
	if err := s.Do(ctx, calls[:]); err != nil {
		return err
	}
	return calls[0].Err
}

var (
	// ErrClosed is the error of a call on a closed store.
	ErrClosed = errors.New("store is closed")
	// ErrRepeated is the Err of a call with two ops on the same key.
	ErrRepeated = errors.New("two ops on the same key in one call")
	// ErrFull is the cause of an [OutageError] when a space has no room for a
	// new key.
	ErrFull = errors.New("no room for a new key: raise the limit, or wait until keys expire")
	// ErrMoved is the error of a list of keys that cannot go on, because the servers have changed, or the process
	// was started again with keys in another order.
	ErrMoved = errors.New("the keys have moved since the list began: begin again")
)

// OutageError is the Err of a call that a store could not answer, or the error of
// a read. It names the ops concerned and the cause. The caller then applies the
// outage policy of each rule.
//
// Two kinds come with results. With the reason unconfirmed the call was counted, and too few replicas have confirmed that: all
// of its results are set. If a settle, a cancel or a renewal names Ops and is not Uncounted, the others have ended or
// renewed their holds, and their results are set.
type OutageError struct {
	// Ops holds the indexes of the ops that the store could not answer,
	// ascending. nil means all ops of the call.
	Ops []int

	// Reason is the class of the cause, and Err the cause, which is not nil.
	Reason Reason
	Err    error

	// Uncounted reports whether it is certain that the call was not counted, so that
	// it can be made again.
	Uncounted bool

	// RetryAfter is the wait until the store may be able to answer: for
	// [ErrFull], until the next key may expire. 0: not known.
	RetryAfter time.Duration
}

// Error returns the cause as text, with the number of ops if Ops names them.
func (e *OutageError) Error() string {
	switch {
	case errors.Is(e.Err, ErrFull):
		return e.Err.Error() // the store was reached
	case e.Ops == nil:
		return fmt.Sprintf("store unavailable: %v", e.Err)
	}
	return fmt.Sprintf("store unavailable for %d ops: %v", len(e.Ops), e.Err)
}

// Unwrap returns the cause.
func (e *OutageError) Unwrap() error { return e.Err }

// Reason is the class of the cause of an outage, in one word for logs, metrics and
// answers. Each store has its own; package redisstore lists those of Redis. Full stands
// for a lack of room ([ErrFull]), and loading for a store that is still reading its
// counters. The empty Reason is reported as unknown.
type Reason string
