package script

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/window"
)

// Calls that are decided once. The program once, lua/once_begin.lua around the full program, decides them. A
// record has, from the digest of the request on,
//
//	16 bytes      the digest
//	12 bytes      the ID of the holds of a take, or 0
//	1 byte        1: the caller denied the take
//	for each op   8 bytes of the digest of its key, its capacity, its hits, and its flags
//
// the length of these, and the reply of the program.
const (
	recordDigest = 16
	recordID     = 12
	recordHead   = recordDigest + recordID + 1
	recordOp     = 8 + 8 + 8 + 1
)

// The flags of an op in a record.
const (
	recordEnforces    byte = 1 << iota // it can deny its take
	recordLowers                       // what remains under it bounds how many hits its take counts
	recordCountDenied                  // it has CountDenied
)

// appendOnce appends what the program once reads at the end of its argument.
func appendOnce(b []byte, call *Call) []byte {
	from := len(b)
	b = append(put7(b, max(call.Once.N, 0)), bit(call.Drops)|2*bit(call.IsPart))
	b = append(b, call.Once.Member[:recordDigest]...)
	var id [recordID]byte
	for i := range call.Ops {
		if h := call.Ops[i].Hold; h != nil && call.Verb == store.Take {
			id = h.ID
		}
	}
	b = append(append(b, id[:]...), bit(call.Once.Role == store.Look))
	for i := range call.Ops {
		op := &call.Ops[i]
		digest := keyname.Digest(op)
		b = append(b, digest[:8]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(op.Limit.Capacity()))
		b = binary.LittleEndian.AppendUint64(b, uint64(op.N))
		flags := byte(0)
		if call.Verb == store.Take && op.Role == store.Enforce {
			_, lowers := mostUpTo(call.Verb, op)
			flags = recordEnforces | bit(lowers)*recordLowers | bit(op.CountDenied)*recordCountDenied
		}
		b = append(b, flags)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(len(b)-from))
}

func bit(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// recorded writes the results that record has for the ops of call. It returns the instant at which these were
// decided.
func (c *Codec) recorded(record string, call *Call) (decided window.Instant, err error) {
	bad := fmt.Errorf("the record of a call is %d bytes", len(record))
	if len(record) < recordHead {
		return 0, bad
	}
	// The first call had as many ops as there are replies, which follow.
	ops := (len(record) - recordHead - 4 - replyHead) / (recordOp + replyFull)
	reply := recordHead + ops*recordOp + 4
	if ops < 0 || len(record) != reply+replyHead+ops*replyFull || record[reply] != statusFull {
		return 0, bad
	}
	decided = window.Instant(get7(record[reply+1:]))
	var found []int
	for i := range call.Ops {
		op := &call.Ops[i]
		op.Result = window.Result{}
		digest := keyname.Digest(op)
		n := -1
		for k := range ops {
			k = (i + k) % ops // most often it is the op with the same number
			if record[recordHead+k*recordOp:][:8] == string(digest[:8]) {
				n = k
				break
			}
		}
		if n < 0 {
			continue
		}
		found = append(found, i)
		own := []byte(record[recordHead+n*recordOp:][8:recordOp])
		fullResult(record[reply+replyHead+n*replyFull:], op, int64(binary.LittleEndian.Uint64(own)))
		op.N = int64(binary.LittleEndian.Uint64(own[8:]))
		if h := op.Hold; h != nil {
			h.Decided = decided
			if call.Verb == store.Take {
				copy(h.ID[:], record[recordDigest:])
			}
		}
	}
	once, left := &call.Once.Result, int64(math.MaxInt64) // what fits, for hits up to that
	once.Before, once.Used = 1, 1
	if record[recordDigest+recordID] == 1 {
		Deny(once, window.Never)
	}
	for k := range ops {
		own, r := record[recordHead+k*recordOp:], record[reply+replyHead+k*replyFull:]
		flags, answer, wait := own[recordOp-1], r[replyOp], get7(r[2*7:])
		switch {
		case wait == 0 || flags&recordEnforces == 0:
		case wait == never:
			Deny(once, window.Never)
		default:
			Deny(once, time.Duration(wait)*time.Microsecond)
		}
		switch capacity := int64(binary.LittleEndian.Uint64([]byte(own[8:16]))); {
		case flags&recordLowers == 0 || capacity == window.Unlimited:
		case answer&answerBanned != 0 && (answer&answerStruck == 0 || flags&recordCountDenied != 0): // see store.LowerUpTo
			left = 0
		default:
			left = min(left, max(capacity-get7(r[7:]), 0))
		}
	}
	for _, i := range found {
		if op := &call.Ops[i]; op.UpTo && op.N > 0 && call.Verb == store.Take {
			op.N = max(min(op.N, left), 1)
		}
	}
	return decided, nil
}

// Deny makes r, the result of a record, tell of a denial with this wait.
func Deny(r *window.Result, wait time.Duration) {
	if r.Allowed || r.RetryAfter != window.Never && (wait == window.Never || wait > r.RetryAfter) {
		r.Allowed, r.RetryAfter = false, wait
	}
}
