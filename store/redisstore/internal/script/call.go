package script

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/window"
)

// Call is a call, or the part of a call that one slot decides: a program decides
// it in one atomic step.
type Call struct {
	Verb store.Verb
	Ops  []store.Op

	// Once is the op of the call's record, or nil. On a cluster the record is in the slot of the key of Beside, and
	// Beside is nil elsewhere. Drops makes the call, which undoes another one, drop the record of that. IsPart tells
	// that other slots decide the rest of the call. Then a denial keeps its record in any case: if this slot decided
	// anew, a retry that finds the records of the others would be admitted.
	Once, Beside *store.Op
	Drops        bool
	IsPart       bool

	// Now takes the place of the server's instant, in tests only; 0 does not.
	Now window.Instant

	// Near is about the server's instant: the call carries the calendar periods around it.
	// 0 means what the sender of the call knows.
	Near window.Instant

	// Deadline is the server's instant after which the call counts nothing, if that of its
	// sender is not earlier; 0 is none.
	Deadline window.Instant

	// What answers so far have asked for, see [Call.Again].
	full    bool                   // the full program
	nears   map[int]window.Instant // ops that need the periods around other instants
	periods int                    // how often periods were not the right ones
}

// MaxOps is the most ops that a program can read.
const MaxOps = 1<<16 - 1

// Again reports whether c, which ended with err at the server's instant now, should be sent
// again, and prepares it for that. It should if its program does not know the holds or the
// ban of a state, and after a [CalendarError], up to twice for each op and once more: an op
// may need the periods around two instants that its state has seen.
func (c *Call) Again(err error, now window.Instant) bool {
	var state *StateError
	if errors.As(err, &state) && isWrapped(state.Head) && !c.full {
		c.full = true
		return true
	}
	var off *CalendarError
	if !errors.As(err, &off) || c.periods > 2*len(c.Ops) {
		return false
	}
	c.periods++
	if off.At == now {
		c.Near = now
	}
	if c.nears == nil {
		c.nears = map[int]window.Instant{}
	}
	c.nears[off.Op] = off.At // even instead of a later one: the state may not exist any more
	return true
}

// Where the parts of an argument for one call begin, see lua/begin.lua: the
// deadline, the number of keys, and the ops with their number. In the plan of a batch the
// earliest deadline, the number of keys that repeat others, and the calls begin there.
const (
	atDeadline = 7
	atKeys     = 14
	atOps      = 16
	atCalls    = 16
)

// BatchArgs returns the arguments for a batch of calls that have these arguments, all with
// the same instant instead of the server's, and these keys, in their order: see
// lua/batch_begin.lua.
func BatchArgs(calls, keys []string) []string {
	const most = 8 // strings of ops to compare with: calls that ask the same are the rule
	head, soonest := make([]byte, atCalls, atCalls+10*len(calls)), int64(unlimited)
	args := make([]string, 1, 4)
	for _, s := range calls {
		if deadline := get7(s[atDeadline:]); deadline > 0 {
			soonest = min(soonest, deadline)
		}
		ops, at := s[atOps:], len(args)
		for i := len(args) - 1; i > 0 && i >= len(args)-most; i-- {
			if args[i] == ops {
				at = i
				break
			}
		}
		if at == len(args) {
			args = append(args, ops)
		}
		head = append(append(head, s[atDeadline:atOps]...), byte(at+1))
	}
	copy(head, calls[0][:atDeadline])
	copy(head[atDeadline:], put7(nil, soonest))
	before := len(head)
	head = appendRepeats(head, keys)
	binary.LittleEndian.PutUint16(head[atKeys:], uint16((len(head)-before)/2)) // below the number of keys
	args[0] = string(head)
	return args
}

// appendRepeats appends the indexes, from 1 on, of keys that repeat earlier ones, and of
// a few others: a program reads those keys again.
func appendRepeats(b []byte, keys []string) []byte {
	var seen [64]uint64 // a set of hashes of 12 bits
	for i, k := range keys {
		h := uint64(len(k))
		for _, c := range []byte(k[max(0, len(k)-8):]) { // digits of a digest
			h = h*31 + uint64(c)
		}
		h = h * 0x9e3779b97f4a7c15 >> 52
		if bit := uint64(1) << (h % 64); seen[h/64]&bit != 0 {
			b = binary.LittleEndian.AppendUint16(b, uint16(i+1)) // a batch has at most 1,536 keys
		} else {
			seen[h/64] |= bit
		}
	}
	return b
}

// appendKeys appends the names of all keys of a call to b, concatenated, and
// where each of them ends to ends.
func (c *Codec) appendKeys(b []byte, ends []int, call *Call) ([]byte, []int, error) {
	var seen map[string]struct{}
	if len(call.Ops) > few {
		seen = make(map[string]struct{}, len(call.Ops))
	}
	for i := range call.Ops {
		op, from := &call.Ops[i], len(b)
		b = c.names.Append(b, op)
		name, repeated := b[from:], false
		if seen != nil {
			_, repeated = seen[string(name)]
			seen[string(name)] = struct{}{}
		} else {
			before := 0
			for _, end := range ends {
				repeated = repeated || string(b[before:end]) == string(name)
				before = end
			}
		}
		if repeated {
			return b, ends, store.ErrRepeated
		}
		ends = append(ends, len(b))
		if op.Limit.Measure == window.Distinct {
			b = append(append(b, name...), keyname.MembersSuffix...)
			ends = append(ends, len(b))
			b = append(append(b, name...), keyname.UsesSuffix...)
			ends = append(ends, len(b))
		}
	}
	return b, ends, nil
}

// few is how many keys are compared with each other. More of them go into a map.
const few = 8

// Encode returns the program that decides call, its keys, which it appends to keys, and its
// argument. The keys and the argument share their memory. near is about the server's instant,
// or 0, and deadline the one after which the call counts nothing; 0 is none.
func (c *Codec) Encode(call *Call, near, deadline window.Instant, keys []string) (*Program, []string, string, error) {
	switch {
	case call.Now != 0:
		near = call.Now
	case call.Near != 0:
		near = call.Near
	case near == 0:
		near = window.At(time.Now())
	}
	if call.Deadline != 0 && (deadline == 0 || call.Deadline < deadline) {
		deadline = call.Deadline
	}
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	var room [few]int
	b, ends, err := c.appendKeys((*buf)[:0], room[:0], call)
	if call.Once != nil && err == nil {
		b = c.names.AppendRecord(b, call.Once, call.Beside)
		ends = append(ends, len(b))
	}
	*buf = b
	if err != nil {
		return nil, nil, "", err
	}
	b = put7(b, call.Now, deadline)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(ends))) // exact for calls that batches have
	b = binary.LittleEndian.AppendUint16(b, uint16(len(call.Ops)))
	isFull := call.full || c.markFull(call) || call.Once != nil
	first := kindFor(call.Ops[0].Limit)
	v, allFast, mixed := general, true, first.wraps
	for i := range call.Ops {
		op, k := &call.Ops[i], kindFor(call.Ops[i].Limit)
		if isFull {
			b = appendFull(append(b, k.code), call.Verb, op)
		} else {
			asked, n := askCode(call.Verb, op), min(max(op.N, 0), window.MaxHits+1)
			if most, upTo := mostUpTo(call.Verb, op); upTo {
				asked += askUpTo
				b = put7(append(b, k.code, asked), n, most)
			} else {
				b = put7(append(b, k.code, asked), n)
			}
			mixed = mixed || k != first
			allFast = allFast && k.fast && asked <= askEnforce
			if asked == askRefund {
				v |= refund
			}
		}
		at := near
		if own, ok := call.nears[i]; ok {
			at = own
		}
		b = c.appendLimit(b, k, op.Limit, at)
		if k.distinct {
			b = append(b, fingerprint(op.Member)...)
		}
	}
	switch {
	case call.Once != nil:
		call.Once.Result = window.Result{Allowed: true}
		b, v = appendOnce(b, call), once
	case isFull:
		v = full
	case allFast:
		v = fast
	case !mixed:
		v += perKind * variant(first.code)
	}
	*buf = b
	text, from := string(b), 0
	for _, end := range ends {
		keys = append(keys, text[from:end])
		from = end
	}
	return c.programs.of(v), keys, text[from:], nil
}
