package script

import (
	"encoding/binary"
	"fmt"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/window"
)

// Calls that are decided once. The program once, lua/once_begin.lua around the full program, decides them. A
// record has, from the digest of the request on,
//
//	16 bytes      the digest
//	12 bytes      the ID of the holds of a take, or 0
//	for each op   8 bytes of the digest of its key, its capacity, and its hits
//
// the length of these, and the reply of the program.
const (
	recordDigest = 16
	recordHead   = recordDigest + 12
	recordOp     = 8 + 8 + 8
)

// appendOnce appends what the program once reads at the end of its argument.
func appendOnce(b []byte, call *Call) []byte {
	from := len(b)
	b = put7(b, max(call.Once.N, 0))
	if call.Drops {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = append(b, call.Once.Member[:recordDigest]...)
	var id [12]byte
	for i := range call.Ops {
		if h := call.Ops[i].Hold; h != nil && call.Verb == store.Take {
			id = h.ID
		}
	}
	b = append(b, id[:]...)
	for i := range call.Ops {
		op := &call.Ops[i]
		digest := keyname.Digest(op)
		b = append(b, digest[:8]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(op.Limit.Capacity()))
		b = binary.LittleEndian.AppendUint64(b, uint64(op.N))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(len(b)-from))
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
	call.Once.Result.Before, call.Once.Result.Used = 1, 1
	if call.Verb == store.Take {
		lowerSome(call.Ops, found)
	}
	return decided, nil
}

// lowerSome is [store.LowerUpTo] for the ops with these indexes.
func lowerSome(ops []store.Op, which []int) {
	some := make([]store.Op, len(which))
	for n, i := range which {
		some[n] = ops[i]
	}
	store.LowerUpTo(store.Take, some)
	for n, i := range which {
		ops[i].N = some[n].N
	}
}
