package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Step is a call, or the part of a call that one slot decides: a program decides
// it in one atomic step.
type Step struct {
	Verb  store.Verb
	Ops   []store.Op
	Which []int // the ops of the step, by their index in Ops
	Times Times
}

// Times are what a step carries besides its ops.
type Times struct {
	// Now takes the place of the server's instant, in tests only; 0 does not.
	Now window.Instant

	// Near is about the server's instant: the step carries the calendar periods
	// around it. 0 means the time of this machine. Nears has the instants of ops
	// that need others, by their place in Which.
	Near  window.Instant
	Nears map[int]window.Instant

	// Deadline is the server's instant after which the step counts nothing any
	// more; 0 is none.
	Deadline window.Instant

	// Around makes the step run the program for holds and bans: a key has a state
	// that a limit with them left behind.
	Around bool
}

// MaxOps is the most ops that a program can read.
const MaxOps = 1<<16 - 1

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

// With each of these errors a server has answered, and nothing was counted.
var (
	// ErrStale is the error of a step that reached the server after its deadline.
	ErrStale = errors.New("the call came too late to the server")
	// ErrForeign is the error of a key that holds something else than a string.
	ErrForeign = errors.New("it is not weir's; delete it or use another prefix")
	// ErrCalendar is the error of a step whose calendar periods are not around the
	// server's instant. It is a [CalendarError].
	ErrCalendar = errors.New("the calendars of this machine and of the server differ")
)

// CalendarError is the error of an op that needs the periods around another
// instant. Its step succeeds when it is sent again with them. The instant is the
// server's, or a later one that the op's state has seen.
type CalendarError struct {
	Op int // its place in Which
	At window.Instant
}

// Error returns the text of [ErrCalendar].
func (e *CalendarError) Error() string { return ErrCalendar.Error() }

// Is reports whether target is [ErrCalendar].
func (e *CalendarError) Is(target error) bool { return target == ErrCalendar }

// Again returns t for a step that ended with err, and reports whether it should be
// sent again: when err is that of a state with holds or a ban that its program does not
// know, or a [CalendarError], twice for each op and once more: an op may need the periods
// around two instants that its state has seen. sent is how often it was sent again
// before. now is the server's instant.
func (t Times) Again(err error, now window.Instant, sent, ops int) (Times, bool) {
	var off *CalendarError
	var state *StateError
	if t.Around {
		sent--
	}
	switch {
	case errors.As(err, &state) && state.around() && !t.Around:
		t.Around = true
		return t, true
	case !errors.As(err, &off) || sent > 2*ops:
		return t, false
	}
	if off.At == now {
		t.Near = now
	}
	t.Nears = maps.Clone(t.Nears)
	if t.Nears == nil {
		t.Nears = map[int]window.Instant{}
	}
	t.Nears[off.Op] = off.At // also in place of a later one: the state may be gone
	return t, true
}

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

// around reports whether the state has holds or a ban around it.
func (e *StateError) around() bool {
	return isStateAround(e.Head)
}

// ServerError is the error that the server returned to one step of a run.
type ServerError struct{ Text string }

// Error returns the server's text.
func (e *ServerError) Error() string { return e.Text }

// Where the parts of an argument for one step begin, see lua/begin.lua: the
// deadline, the number of keys, and the ops with their number. In the plan of a run the
// earliest deadline, the number of keys that repeat others, and the steps begin there.
const (
	atDeadline = 7
	atKeys     = 14
	atOps      = 16
	atSteps    = 16
)

// Run returns the arguments for a run of steps that have these arguments, all with
// the same instant in place of the server's, and these keys, in their order: see
// lua/run_begin.lua.
func Run(steps, keys []string) []string {
	const most = 8 // strings of ops to compare with: steps that ask the same are the rule
	head, soonest := make([]byte, atSteps, atSteps+10*len(steps)), int64(unlimited)
	args := make([]string, 1, 4)
	for _, s := range steps {
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
	copy(head, steps[0][:atDeadline])
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
			b = binary.LittleEndian.AppendUint16(b, uint16(i+1)) // a run has at most 1,536 keys
		} else {
			seen[h/64] |= bit
		}
	}
	return b
}

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

// Keys returns the names of all keys of a step, or [store.ErrRepeated] when two
// ops have the same one. An op with members has three.
func (c *Codec) Keys(s *Step) ([]string, error) {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	var room [few]int
	b, ends, err := c.appendKeys((*buf)[:0], room[:0], s)
	*buf = b
	if err != nil {
		return nil, err
	}
	return divide(make([]string, 0, len(ends)), string(b), ends), nil
}

// appendKeys appends the names of all keys of a step to b, one behind the other, and
// where each of them ends to ends.
func (c *Codec) appendKeys(b []byte, ends []int, s *Step) ([]byte, []int, error) {
	var seen map[string]struct{}
	if len(s.Which) > few {
		seen = make(map[string]struct{}, len(s.Which))
	}
	var firsts [few]struct{ from, to int } // of the first key of each op
	for n, i := range s.Which {
		op, from := &s.Ops[i], len(b)
		b = c.names.Append(b, op)
		to := len(b)
		name, repeated := b[from:to], false
		if seen != nil {
			_, repeated = seen[string(name)]
			seen[string(name)] = struct{}{}
		} else {
			for _, other := range firsts[:n] {
				repeated = repeated || string(b[other.from:other.to]) == string(name)
			}
			firsts[n].from, firsts[n].to = from, to
		}
		if repeated {
			return b, ends, store.ErrRepeated
		}
		ends = append(ends, to)
		if op.Limit.Distinct() {
			b = append(append(b, name...), membersSuffix...)
			ends = append(ends, len(b))
			b = append(append(b, name...), usesSuffix...)
			ends = append(ends, len(b))
		}
	}
	return b, ends, nil
}

// divide appends the parts of text that end at ends to parts.
func divide(parts []string, text string, ends []int) []string {
	from := 0
	for _, end := range ends {
		parts = append(parts, text[from:end])
		from = end
	}
	return parts
}

// countKeys returns the number of names that Keys returns.
func countKeys(s *Step) int {
	n := len(s.Which)
	for _, i := range s.Which {
		if s.Ops[i].Limit.Distinct() {
			n += 2
		}
	}
	return n
}

// few is how many keys are compared with each other. More of them go into a map.
const few = 8

// Command returns the program for a step, its keys, which it appends to keys, and its
// argument. The keys and the argument share their memory.
func (c *Codec) Command(s *Step, t Times, keys []string) (*Program, []string, string, error) {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	var room [few]int
	b, ends, err := c.appendKeys((*buf)[:0], room[:0], s)
	if err != nil {
		*buf = b
		return nil, nil, "", err
	}
	at := len(b)
	b, program := c.appendStep(b, s, t.near())
	*buf = b
	text := string(b)
	return c.programs.at(program), divide(keys, text, ends), text[at:], nil
}

// Encode returns the program for a step and its argument.
func (c *Codec) Encode(s *Step, t Times) (*Program, string) {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	b, program := c.appendStep((*buf)[:0], s, t.near())
	*buf = b
	return c.programs.at(program), string(b)
}

// near returns t with the instant that calendar periods are around.
func (t Times) near() Times {
	switch {
	case t.Now != 0:
		t.Near = t.Now
	case t.Near == 0:
		t.Near = window.At(time.Now())
	}
	return t
}

// appendStep appends the argument for a step, and returns the index of the program
// that reads it.
func (c *Codec) appendStep(b []byte, s *Step, t Times) ([]byte, int) {
	b = put7(b, t.Now, t.Deadline)
	b = binary.LittleEndian.AppendUint16(b, uint16(countKeys(s))) // exact for steps that runs have
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s.Which)))
	if t.Around || c.isAround(s) {
		return c.appendOpsAround(b, s, t), around.index()
	}
	first, many := kindFor(s.Ops[s.Which[0]].Limit), len(s.Which) > 1
	mixed, refund, fast, hits := first.wraps, false, true, false
	for n, i := range s.Which {
		op := &s.Ops[i]
		k, asked := kindFor(op.Limit), ask(s.Verb, op)
		near := t.Near
		if own, ok := t.Nears[n]; ok {
			near = own
		}
		b = c.appendOp(b, k, asked, op, near)
		mixed = mixed || k != first
		refund = refund || asked == askRefund
		fast = fast && k.fast && (asked <= askEnforce || asked <= askRecord && !many)
		hits = hits || k.fastMany && op.Limit.Group() == 1
	}
	switch {
	case many && fast && (mixed || hits || !first.fastMany):
		first = nil // the program for several ops of all fast kinds
	case mixed:
		first, fast = nil, false
	}
	return b, recipeIndex(first, many, fast, refund, false)
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
