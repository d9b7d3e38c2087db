package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The statuses that a reply begins with: the constants of lua/head.lua.
const (
	statusDone byte = iota
	statusStale
	statusClock
	statusBroken
	statusForeign
	statusFailed
	statusFull     // done, of lua/call_full.lua
	statusTogether // done, of all calls of a batch, whose numbers are doubles
	statusOnce     // of lua/once_begin.lua: a record follows
	statusConflict
	statusNone
	statusLater // of lua/batch_end.lua: not decided, because others have taken long
)

const (
	replyHead  = 1 + 7
	replyOp    = 4 * 7
	replyWide  = 4 * 8
	replyFull  = replyOp + 1
	replyClock = 2 + 7
)

// Reply is the reply to one call, or the replies to the calls of a batch, in their order.
type Reply struct {
	At   window.Instant // the server's; 0: the reply has none
	text string
	bare bool // text has nothing but the numbers of the ops, as doubles: the fast path has decided all calls
}

// ReadReply returns the reply of a program to a batch, or to one call.
func ReadReply(text string) (r Reply) {
	if r.text = text; len(text) < replyHead {
		return r
	}
	if r.At = window.Instant(get7(text[1:])); text[0] == statusTogether {
		r.text, r.bare = text[replyHead:], true
	}
	return r
}

// Next cuts the reply to the next call, which has so many ops, off r.
func (r *Reply) Next(ops int) (Reply, error) {
	n := replyHead
	switch {
	case r.bare:
		n = ops * replyWide
	case len(r.text) < n:
	case r.text[0] == statusDone:
		n += ops * replyOp
	case r.text[0] == statusFull:
		n += ops * replyFull
	case r.text[0] == statusOnce: // a call by itself
		n = len(r.text)
	case r.text[0] == statusClock:
		n += replyClock
	case r.text[0] == statusBroken, r.text[0] == statusForeign, r.text[0] == statusFailed:
		const size = replyHead + 4
		if len(r.text) >= size+2 {
			n = size + 2 + int(binary.LittleEndian.Uint16([]byte(r.text[size:])))
		}
	}
	if len(r.text) < n {
		return Reply{}, fmt.Errorf("the script answers %q", r.text)
	}
	one := Reply{r.At, r.text[:n], r.bare}
	r.text = r.text[n:]
	return one, nil
}

// Counts reports whether r, the reply to call that [Reply.Next] has returned, is not a denial or an error: these need no
// confirmation.
func (r *Reply) Counts(call *Call) bool {
	get, size, number, ops := get7, replyOp, 7, r.text
	switch {
	case r.bare:
		get, size, number = getDouble, replyWide, 8
	case ops[0] == statusDone:
		ops = ops[replyHead:]
	case ops[0] == statusFull:
		size, ops = replyFull, ops[replyHead:]
	default:
		return ops[0] == statusOnce
	}
	for i := range call.Ops {
		if wait := get(ops[i*size+2*number:]); call.Verb == store.Take && call.Ops[i].Role == store.Enforce && wait != 0 {
			return false
		}
	}
	return true
}

// Decode writes the results that r, the reply to call that [Reply.Next] has returned, has, and returns the
// server's instant. Where it returns an error, nothing was counted and no result is written.
func (c *Codec) Decode(call *Call, keys []string, r Reply) (now window.Instant, err error) {
	now, reply := r.At, r.text
	switch {
	case r.bare || reply[0] == statusDone: // for each op the hits used, those used before, the wait, and the time until it is unused
		get, size := getDouble, replyWide/4
		if !r.bare {
			get, size, reply = get7, replyOp/4, reply[replyHead:]
		}
		for i := range call.Ops {
			op, n := &call.Ops[i], reply[4*size*i:]
			op.Result = result(op.Limit, op.Limit.Capacity(), get(n), get(n[size:]), get(n[2*size:]), get(n[3*size:]))
			if op.Hold != nil {
				op.Hold.Decided = now
			}
		}
	case reply[0] == statusFull:
		c.fullResults(reply[replyHead:], call, now)
	case reply[0] == statusOnce:
		return c.recorded(reply[replyHead:], call)
	case reply[0] == statusConflict:
		return now, store.ErrConflict
	case reply[0] == statusNone:
		for i := range call.Ops {
			call.Ops[i].Result = window.Result{}
		}
		return now, nil
	case reply[0] == statusStale:
		return now, ErrStale
	case reply[0] == statusLater:
		return now, ErrLater
	case reply[0] == statusClock:
		op := int(reply[replyHead]) | int(reply[replyHead+1])<<8
		return now, &CalendarError{Op: op - 1, At: window.Instant(get7(reply[replyHead+2:]))}
	default:
		return now, refused(reply, keys)
	}
	if call.Verb == store.Take || call.Verb == store.Reserve {
		store.LowerUpTo(call.Verb, call.Ops) // as the program has done
	}
	return now, nil
}

// never is the wait in a reply for hits that can never fit.
const never = window.MaxHits + 1

// result returns what a window of a limit with this capacity returns with these numbers. The waits are in
// microseconds.
func result(l *window.Compiled, capacity, used, before, wait, reset int64) window.Result {
	r := window.Result{
		Allowed:    wait == 0,
		Quota:      capacity,
		Used:       used,
		Before:     before,
		Remaining:  window.Unlimited,
		RetryAfter: time.Duration(wait) * time.Microsecond,
		ResetAfter: time.Duration(reset) * time.Microsecond,
	}
	if r.Quota != window.Unlimited {
		r.Remaining = max(0, r.Quota-used)
	}
	if wait == never {
		r.RetryAfter = window.Never
	}
	if reset > longest && hasEver(l) {
		r.ResetAfter = window.Never
	}
	return r
}

// refused returns the error of a key that the program could not read.
func refused(reply string, keys []string) error {
	const head = replyHead + 4 + 2
	if len(reply) < head {
		return fmt.Errorf("the script answers %q", reply)
	}
	n := int(binary.LittleEndian.Uint32([]byte(reply[replyHead:]))) - 1
	if n < 0 || n >= len(keys) {
		return fmt.Errorf("the script answers %q", reply)
	}
	if reply[0] == statusFailed {
		return About(&ServerError{Text: reply[head:]}, keys...)
	}
	if reply[0] == statusForeign {
		return About(fmt.Errorf("%s: %w", reply[head:], ErrForeign), keys[n])
	}
	return &StateError{Key: keys[n], Head: reply[head:]}
}

// IsRefusal reports whether err is that of a call which stores refuse, and no outage.
func IsRefusal(err error) bool {
	return errors.Is(err, store.ErrRepeated) || errors.Is(err, store.ErrConflict)
}

// With each of these errors a server has answered, and nothing was counted.
var (
	// ErrStale is the error of a call that reached the server after its deadline.
	ErrStale = errors.New("the call came too late to the server")
	// ErrLater is the error of a call that was not decided, because those before it in a batch took long.
	ErrLater = fmt.Errorf("%w, behind others", ErrStale)
	// ErrForeign is the error of a key that holds something else than a string.
	ErrForeign = errors.New("it is not weir's; delete it or use another prefix")
)

// CalendarError is the error of an op whose calendar periods are not around the server's instant, or around a later
// one that its state has seen. The server has counted nothing. The call succeeds when it is sent again with the periods
// around At.
type CalendarError struct {
	Op int // its index in Ops
	At window.Instant
}

// Error returns what is wrong.
func (e *CalendarError) Error() string {
	return "the calendars of this machine and of the server differ"
}

// KeyError is an error about one or several keys.
type KeyError struct {
	Key  string
	More int // keys, of which the error may be, too
	Err  error
}

// About returns err as an error about keys, which it does not keep.
func About(err error, keys ...string) *KeyError { return &KeyError{keys[0], len(keys) - 1, err} }

// Error returns the key, how many more there are, and the error.
func (e *KeyError) Error() string {
	if e.More == 0 {
		return fmt.Sprintf("key %q: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("key %q and %d more: %v", e.Key, e.More, e.Err)
}

// Unwrap returns the error without the keys.
func (e *KeyError) Unwrap() error { return e.Err }

// KeyText returns the part of the text that shows a key, for logs that must not.
func (e *KeyError) KeyText() string { return strconv.Quote(e.Key) }

// StateError is the error of a key whose state cannot be read: another program
// wrote it, or a newer version of this one.
type StateError struct {
	Key  string
	Head string // the first two bytes: version and kind
}

// Error returns the key, how its state begins, and what to do.
func (e *StateError) Error() string {
	return fmt.Sprintf("key %q holds no state that this version can read: it begins with %q; delete it or use another prefix", e.Key, e.Head)
}

// KeyText returns the part of the text that shows a key, for logs that must not.
func (e *StateError) KeyText() string { return strconv.Quote(e.Key) }

// ServerError is the error that the server returned to one call of a batch.
type ServerError struct{ Text string }

// Error returns the server's text.
func (e *ServerError) Error() string { return e.Text }
