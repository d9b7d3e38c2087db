package script

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/window"
)

// Calls with ops that are about holds or bans. The full program, lua/call_full.lua, decides
// them: it reads more of each op and answers more, a byte after the numbers with bits for a
// hold, for a ban, and for a state that only this program reads.

// What a call asks for an op, besides the constants in codec.go.
const (
	askSettle   byte = 5 + iota
	askCancel        // and give back
	askRenew         //
	askSet           //
	askUnban         //
	askReserve       //
	askOnlyLook byte = 16
	askAlways   byte = 17
)

// The flags of an op: the constants of lua/call_full.lua.
const (
	flagCountDenied byte = 1 << iota
	flagNamed
	flagNoStrike
	flagSure
	flagBans
	flagHolds
	flagKeeps
	flagAll
)

const (
	answerHeld    = 1
	answerBanned  = 2
	answerWrapped = 4 // the state has holds or what is noted of bans around it
	answerStruck  = 8
)

// longest is the longest window, in µs. A reset that is longer is that of a window
// without an end.
const longest = int64(window.MaxLength / time.Microsecond)

// markFull reports whether call needs the full program: an op is about holds or bans, or its state is
// known to have some. It marks the keys whose states only that program can read afterwards.
func (c *Codec) markFull(call *Call) bool {
	needs := call.Verb > store.Refund
	known := c.leftBehind.n.Load() > 0
	for i := range call.Ops {
		op := &call.Ops[i]
		switch l := op.Limit; {
		case l.HoldLength() > 0 || l.Ban.For > 0:
			needs = true
		case call.Verb == store.Take && op.Hold != nil && op.Hold.ID != [12]byte{} && isUndated(l):
			needs = true
			c.leftBehind.set(op, true) // the state notes from when on no hits were dropped
		case call.Verb == store.Cancel && l.Window.Kind == window.KindSliding:
			c.leftBehind.set(op, true) // a log of groups becomes one of pairs
		case known && !needs:
			needs = c.leftBehind.has(op)
		}
	}
	return needs
}

// isUndated reports whether states under l do not tell if the hits of a take are still in
// them.
func isUndated(l *window.Compiled) bool {
	base, inner := l.Parts()
	if base != nil && isUndated(base) {
		return true
	}
	return inner.Measure == window.Distinct || inner.Window.Kind != window.KindSliding || groupSize(inner) > 1
}

// hasEver reports whether l counts in a window without an end.
func hasEver(l *window.Compiled) bool {
	if l.Window.Kind == window.KindEver {
		return true
	}
	base, inner := l.Parts()
	return base != nil && (hasEver(base) || hasEver(inner))
}

// askFull returns what verb asks for op.
func askFull(verb store.Verb, op *store.Op) byte {
	switch verb {
	case store.Take:
		switch op.Role {
		case store.Enforce:
			return askEnforce
		case store.Shadow:
			return askShadow
		case store.Look:
			return askOnlyLook
		default:
			return askAlways
		}
	case store.Record:
		return askRecord
	case store.Refund:
		return askRefund
	case store.Settle:
		return askSettle
	case store.Cancel:
		return askCancel
	case store.Renew:
		return askRenew
	case store.Set:
		if op.Limit.Measure != window.Distinct && op.Limit.Window.Kind != window.KindHeld {
			return askSet
		}
		return askRecord // of no hits
	case store.Unban:
		return askUnban
	case store.Reserve:
		return askReserve
	}
	return askLook
}

// appendFull appends what the full program reads of op between the codes of its kind and
// the numbers of its limit.
func appendFull(b []byte, verb store.Verb, op *store.Op) []byte {
	l := op.Limit.WithDefaults()
	asked := askFull(verb, op)
	most, upTo := mostUpTo(verb, op)
	if upTo {
		asked += askUpTo
	}
	b = append(b, asked, flags(verb, op))
	n := min(max(op.N, 0), window.MaxHits+1)
	if verb == store.Set && asked == askRecord {
		n = 0
	}
	b = put7(b, n)
	if upTo {
		b = put7(b, most)
	}
	if verb == store.Reserve {
		b = appendReserve(b, op)
	}
	if ban := &l.Ban; ban.For > 0 {
		b = put7(b, micros(ban.For), ban.Factor, micros(ban.Most), micros(ban.Forget))
	}
	if op.Limit.HoldLength() > 0 {
		b = put7(b, micros(op.Limit.HoldLength()))
		b = binary.LittleEndian.AppendUint16(b, uint16(l.MaxHolds))
	}
	if op.Hold != nil {
		b = append(b, op.Hold.ID[:]...)
		b = put7(b, countable(op.Hold.At), countable(op.Hold.End))
	}
	return b
}

// mostHolds is the most holds of a key of a limit whose takes do not hold, as in package window.
const mostHolds = 1000

// appendReserve appends what only a reserve has: Least, Part, which is 0 if the limit cannot reserve, the
// length of the hold, and the most holds.
func appendReserve(b []byte, op *store.Op) []byte {
	var least, part, length int64
	if h := op.Hold; h != nil && op.Limit.CanReserve() {
		least, part = bounded(h.Least), bounded(h.Part)
		length = int64(countable(h.End - h.At))
	}
	return binary.LittleEndian.AppendUint16(put7(b, least, part, length), mostHolds)
}

// bounded returns n as at least 1, and inside what a number in a call can be.
func bounded(n int64) int64 { return min(max(n, 1), window.MaxHits+1) }

// countable returns i inside what a number in a call can be.
func countable(i window.Instant) window.Instant {
	return min(max(i, 0), window.Instant(window.MaxHits))
}

func flags(verb store.Verb, op *store.Op) (f byte) {
	set := func(flag byte, is bool) {
		if is {
			f |= flag
		}
	}
	set(flagCountDenied, op.CountDenied)
	set(flagNamed, op.Hold != nil)
	set(flagNoStrike, op.Hold != nil && op.Hold.NoStrike)
	set(flagSure, op.Hold != nil && op.Hold.Sure)
	set(flagBans, op.Limit.Ban.For > 0)
	set(flagHolds, op.Limit.HoldLength() > 0)
	set(flagKeeps, !op.Limit.Release)
	set(flagAll, verb == store.Refund && op.N == window.All || verb == store.Settle && op.N < 0)
	return f
}

// fullResults writes the results of a reply of the full program.
func (c *Codec) fullResults(reply string, call *Call, now window.Instant) {
	for i := range call.Ops {
		r, op := reply[i*replyFull:], &call.Ops[i]
		fullResult(r, op, op.Limit.Capacity())
		if h := op.Hold; h != nil {
			h.Decided = now
			if call.Verb == store.Reserve && op.Result.Held {
				h.At, h.End = now, now.Add(op.Result.RetryAfter)
				op.Result.Allowed, op.Result.RetryAfter = true, 0
			}
		}
		if op.Limit.HoldLength() == 0 && op.Limit.Ban.For == 0 {
			c.leftBehind.set(op, r[replyOp]&answerWrapped != 0)
		}
	}
}

// fullResult writes the result of op, under a limit with this capacity, which the full program has answered.
func fullResult(r string, op *store.Op, capacity int64) {
	reset := get7(r[21:])
	op.Result = result(op.Limit, capacity, get7(r), get7(r[7:]), get7(r[14:]), reset)
	op.Result.Held, op.Result.Struck = r[replyOp]&answerHeld != 0, r[replyOp]&answerStruck != 0
	if op.Result.Banned = r[replyOp]&answerBanned != 0; op.Result.Banned {
		op.Result.Remaining = 0
		op.Result.ResetAfter = time.Duration(reset) * time.Microsecond
	} else if reset == never {
		op.Result.ResetAfter = window.Never
	}
}

// leftBehind are keys of limits that neither hold nor ban, whose states have holds
// or a ban nevertheless: an earlier limit left them, or hits in the middle of a log
// were given back. Only the full program reads these states. A call
// that finds one with another program is sent again; a call whose key is known runs
// the right program at once. The zero value is ready; it is safe for concurrent
// use.
type leftBehind struct {
	n    atomic.Int32
	mu   sync.Mutex
	keys map[[sha256.Size]byte]struct{}
}

// mostLeftBehind is how many keys are known. When there are more, all are met
// again.
const mostLeftBehind = 1 << 14

func (l *leftBehind) has(op *store.Op) bool {
	h := keyname.Digest(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.keys[h]
	return ok
}

// set notes whether op's state has holds or a ban.
func (l *leftBehind) set(op *store.Op, is bool) {
	if !is && l.n.Load() == 0 {
		return
	}
	h := keyname.Digest(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !is:
		delete(l.keys, h)
	case l.keys == nil || len(l.keys) >= mostLeftBehind:
		l.keys = map[[sha256.Size]byte]struct{}{h: {}}
	default:
		l.keys[h] = struct{}{}
	}
	l.n.Store(int32(len(l.keys)))
}
