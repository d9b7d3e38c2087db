package script

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weirhq/weir/window"
)

// The statuses that a reply begins with: the constants of lua/head_rest.lua.
const (
	statusDone byte = iota
	statusStale
	statusClock
	statusBroken
	statusForeign
	statusFailed
	statusAround   // done, of lua/call_around.lua
	statusAll      // done, of all steps of a run or one on its own, with three numbers for each op
	statusQuick    // done, of one step of a run, with three numbers for each op
	statusAdmitted // done, of all steps of a run or one on its own, with two numbers for each op: none waits
)

const (
	replyHead   = 1 + 7
	replyOp     = 4 * 7
	replyThree  = 3 * 7
	replyTwo    = 2 * 8
	replyAround = replyOp + 1
	replyClock  = 2 + 7
)

// Reply is the reply to one step.
type Reply struct {
	Text string

	// now is the instant of all steps of the run, and form their status, when Text has
	// nothing but the numbers of the ops; else both are 0.
	now  window.Instant
	form byte
}

// Shares reports whether the reply is a part of one that has the instant of all steps.
func (r Reply) Shares() bool { return r.now != 0 }

// Replies are the replies to the steps of a run, in their order.
type Replies struct {
	rest string
	now  window.Instant
	form byte
}

// RepliesIn returns the replies to the steps of a run that are in reply.
func RepliesIn(reply string) Replies {
	if len(reply) >= replyHead && (reply[0] == statusAll || reply[0] == statusAdmitted) {
		return Replies{rest: reply[replyHead:], now: window.Instant(get7(reply[1:])), form: reply[0]}
	}
	return Replies{rest: reply}
}

// Now returns the instant of all steps, or 0 when each reply has its own.
func (r Replies) Now() window.Instant { return r.now }

// Next returns the reply to the next step, which has so many ops.
func (r *Replies) Next(ops int) (Reply, error) {
	n := replyHead
	switch {
	case r.form == statusAdmitted:
		n = ops * replyTwo
	case r.form == statusAll:
		n = ops * replyThree
	case len(r.rest) < n:
	case r.rest[0] == statusDone:
		n += ops * replyOp
	case r.rest[0] == statusQuick:
		n += ops * replyThree
	case r.rest[0] == statusAround:
		n += ops * replyAround
	case r.rest[0] == statusClock:
		n += replyClock
	case r.rest[0] == statusBroken, r.rest[0] == statusForeign, r.rest[0] == statusFailed:
		const size = replyHead + 4
		if len(r.rest) >= size+2 {
			n = size + 2 + int(binary.LittleEndian.Uint16([]byte(r.rest[size:])))
		}
	}
	if len(r.rest) < n {
		return Reply{}, fmt.Errorf("the script answers %q", r.rest)
	}
	one := Reply{Text: r.rest[:n], now: r.now, form: r.form}
	r.rest = r.rest[n:]
	return one, nil
}

// Decode writes the results that a reply to s has, and returns the server's
// instant. Where it returns an error, nothing was counted and no result is
// written. The instant is 0 when the reply has none.
func (c *Codec) Decode(s *Step, keys []string, r Reply) (window.Instant, error) {
	switch r.form {
	case statusAll:
		return r.now, quickResults(r.Text, s, r.now, true)
	case statusAdmitted:
		return r.now, quickResults(r.Text, s, r.now, false)
	}
	reply := r.Text
	if len(reply) < replyHead {
		return 0, fmt.Errorf("%s: the script answers %q", Among(keys), reply)
	}
	now := window.Instant(get7(reply[1:]))
	switch reply[0] {
	case statusDone:
		return now, results(reply[replyHead:], s, now)
	case statusQuick, statusAll: // the latter of a step on its own
		return now, quickResults(reply[replyHead:], s, now, true)
	case statusAdmitted:
		return now, quickResults(reply[replyHead:], s, now, false)
	case statusAround:
		return now, c.resultsAround(reply[replyHead:], s, now)
	case statusStale:
		return now, ErrStale
	case statusClock:
		if len(reply) != replyHead+replyClock {
			return now, fmt.Errorf("%s: the script answers %q", Among(keys), reply)
		}
		op := int(reply[replyHead]) | int(reply[replyHead+1])<<8
		return now, &CalendarError{Op: op - 1, At: window.Instant(get7(reply[replyHead+2:]))}
	}
	return now, refused(reply, keys)
}

// results writes the results of a reply.
func results(reply string, s *Step, now window.Instant) error {
	if len(reply) != replyOp*len(s.Which) {
		return fmt.Errorf("the script answers %d bytes for %d ops", len(reply), len(s.Which))
	}
	for n, i := range s.Which {
		r := reply[n*replyOp:]
		op := &s.Ops[i]
		op.Result = result(op.Limit, get7(r), get7(r[7:]), get7(r[14:]), get7(r[21:]))
		if op.Hold != nil {
			op.Hold.Decided = now
		}
	}
	return nil
}

// quickResults writes the results of a reply without the hits that were used before: with
// the hits used, the wait, if there are waits, and the time until it is unused. Ops that
// do not wait have counted their hits, and those that are enforced have done so if no
// other one waits.
func quickResults(reply string, s *Step, now window.Instant, waits bool) error {
	size := replyTwo
	if waits {
		size = replyThree
	}
	if len(reply) != size*len(s.Which) {
		return fmt.Errorf("the script answers %d bytes for %d ops", len(reply), len(s.Which))
	}
	admitted := true
	for n, i := range s.Which {
		if waits && get7(reply[n*size+7:]) != 0 && ask(s.Verb, &s.Ops[i]) == askEnforce {
			admitted = false
		}
	}
	for n, i := range s.Which {
		r, op := reply[n*size:], &s.Ops[i]
		var used, wait, reset int64
		if waits {
			used, wait, reset = get7(r), get7(r[7:]), get7(r[14:])
		} else {
			used, reset = getDouble(r), getDouble(r[8:])
		}
		before := used
		if asked := ask(s.Verb, op); asked != askLook && wait == 0 && (asked != askEnforce || admitted) {
			before -= op.N
		}
		op.Result = result(op.Limit, used, before, wait, reset)
		if op.Hold != nil {
			op.Hold.Decided = now
		}
	}
	return nil
}

// never is the wait in a reply for hits that can never fit.
const never = window.MaxHits + 1

// result returns what a window returns with these numbers. The waits are in
// microseconds.
func result(l *window.Compiled, used, before, wait, reset int64) window.Result {
	r := window.Result{
		Allowed:    wait == 0,
		Quota:      l.Capacity(),
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
		return fmt.Errorf("%s: %w", Among(keys), &ServerError{Text: reply[head:]})
	}
	if reply[0] == statusForeign {
		return fmt.Errorf("key %q: %s: %w", keys[n], reply[head:], ErrForeign)
	}
	return &StateError{Key: keys[n], Head: reply[head:]}
}

// Among names the keys of a step, for an error.
func Among(keys []string) string {
	if len(keys) == 1 {
		return fmt.Sprintf("key %q", keys[0])
	}
	return fmt.Sprintf("key %q and %d more", keys[0], len(keys)-1)
}
