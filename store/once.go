package store

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/weirhq/weir/window"
)

// ErrConflict is the Err of a call whose record ([Call.Once]) is that of another request.
var ErrConflict = errors.New("the idempotency key was used for another request")

// A record of a call is a state, which begins like that of a fixed window with one hit, so that stores keep
// it as any other state, for as long as [window.Compiled.Expires] says. Its words are
//
//	0     the instant at which it expires, less the length of the window
//	1     1
//	2, 3  the digest of the request
//	4, 5  the ID of the holds of a take, or 0, of 12 bytes; and the bit recordRefused
//	then for each op
//	0     the identity of its key
//	1     N
//	2     the instant at which it was decided
//	3-8   Quota, Used, Before, Remaining, RetryAfter, ResetAfter
//	9     flags
const (
	recordHead = 6
	recordOp   = 10
)

const (
	recordAllowed = 1 << iota
	recordHeld
	recordBanned
	recordStruck
	recordDenied // the op enforces, and denied its take

	recordRefused = 1 // of word 5: the caller denied the take
)

// replay looks for the call in its record, and reports whether the call has its answer: the first one, or an
// error.
func (c *Call) replay(record window.State, now window.Instant) bool {
	c.Once.Result = window.Result{Allowed: true}
	if len(record) < recordHead || now >= c.Once.Limit.Expires(record) {
		return c.Once.N <= 0
	}
	if record[2] != word(c.Once.Member) || record[3] != word(c.Once.Member[8:]) {
		c.Err = ErrConflict
		return true
	}
	c.Once.Result.Before, c.Once.Result.Used = 1, 1
	if record[5]&recordRefused != 0 {
		c.Once.deny(window.Never)
	}
	for w := record[recordHead:]; len(w) >= recordOp; w = w[recordOp:] {
		if w[9]&recordDenied != 0 {
			c.Once.deny(time.Duration(w[7]))
		}
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], record[4])
	binary.BigEndian.PutUint64(id[8:], record[5])
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Result = window.Result{}
		w := find(record[recordHead:], i, identityOf(op))
		if w == nil {
			continue
		}
		op.N = int64(w[1])
		op.Result = window.Result{
			Allowed: w[9]&recordAllowed != 0, Held: w[9]&recordHeld != 0, Banned: w[9]&recordBanned != 0, Struck: w[9]&recordStruck != 0,
			Quota: int64(w[3]), Used: int64(w[4]), Before: int64(w[5]), Remaining: int64(w[6]),
			RetryAfter: time.Duration(w[7]), ResetAfter: time.Duration(w[8]),
		}
		if op.Hold != nil {
			op.Hold.Decided = window.Instant(w[2])
			if c.Verb == Take {
				copy(op.Hold.ID[:], id[:])
			}
		}
	}
	return true
}

// deny makes op, that of a record, tell of a denial with this wait.
func (op *Op) deny(wait time.Duration) {
	r := &op.Result
	if r.Allowed || r.RetryAfter != window.Never && (wait == window.Never || wait > r.RetryAfter) {
		r.Allowed, r.RetryAfter = false, wait
	}
}

// find returns the words of the op with this identity, which is most likely the one numbered i.
func find(ops []uint64, i int, identity uint64) []uint64 {
	if at := i * recordOp; at+recordOp <= len(ops) && ops[at] == identity {
		return ops[at:]
	}
	for ; len(ops) >= recordOp; ops = ops[recordOp:] {
		if ops[0] == identity {
			return ops
		}
	}
	return nil
}

// deniedOnly reports whether the call is a take that an op has denied, and which has counted and banned nothing.
func (c *Call) deniedOnly() bool {
	denied := false
	for i := range c.Ops {
		op := &c.Ops[i]
		counts := op.Role == Always || op.CountDenied || op.Role == Shadow && op.Result.Allowed
		if op.Result.Struck || counts && op.N > 0 {
			return false
		}
		denied = denied || op.Role == Enforce && !op.Result.Allowed
	}
	return c.Verb == Take && denied
}

// record returns the record of the call, which was decided at now, in the memory of s.
func (c *Call) record(s window.State, now func(*Op) window.Instant) window.State {
	var id [16]byte
	begins := max(0, now(c.Once).Add(time.Duration(c.Once.N)*time.Microsecond-c.Once.Limit.Window.Length))
	s = append(s[:0], uint64(begins), 1, word(c.Once.Member), word(c.Once.Member[8:]), 0, 0)
	for i := range c.Ops {
		op, r := &c.Ops[i], &c.Ops[i].Result
		if op.Hold != nil && c.Verb == Take {
			copy(id[:], op.Hold.ID[:])
		}
		s = append(s, identityOf(op), uint64(op.N), uint64(now(op)),
			uint64(r.Quota), uint64(r.Used), uint64(r.Before), uint64(r.Remaining), uint64(r.RetryAfter), uint64(r.ResetAfter),
			flag(r.Allowed, recordAllowed)|flag(r.Held, recordHeld)|flag(r.Banned, recordBanned)|flag(r.Struck, recordStruck)|
				flag(c.Verb == Take && op.Role == Enforce && !r.Allowed, recordDenied))
	}
	s[4], s[5] = word(id[:]), word(id[8:])|flag(c.Once.Role == Look, recordRefused)
	return s
}

func flag(is bool, bit uint64) uint64 {
	if is {
		return bit
	}
	return 0
}

func word(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// identityOf returns the same number for the same key in all processes: an FNV-1a hash. It tells the ops of
// one call apart.
func identityOf(op *Op) uint64 {
	h := uint64(14695981039346656037)
	id := op.Space.ID()
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h = (h ^ uint64(len(id))) * 1099511628211
	for _, c := range op.Key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
