package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// program is what runs on the servers. It is safe for concurrent use.
type program struct {
	names     namer
	scripts   scripts
	calendars calendars
	buffers   sync.Pool // of *[]byte
}

func newProgram(prefix string) *program {
	p := &program{names: namer{prefix}}
	p.buffers.New = func() any { return new([]byte) }
	return p
}

// callOptions are what a call may say besides its ops.
type callOptions struct {
	// now takes the place of the server's instant, in tests only; 0 does not.
	now window.Instant

	// near is about the server's instant, as the caller knows it: the calendar
	// periods around it are sent along. 0 is the time of this machine.
	near window.Instant

	// deadline is the server's instant after which the call must not count any
	// more; 0 is none.
	deadline window.Instant
}

// The statuses that a reply begins with, as lua/call.lua has them.
const (
	statusDone byte = iota
	statusStale
	statusClock
	statusBroken
	statusForeign
)

const (
	replyHead = 1 + 7
	replyOp   = 4 * 7
)

// errStale answers a call that reached the server after its deadline: nothing
// was counted.
var errStale = errors.New("the call came too late to the server")

// What a server answers and counts nothing for, as quickly as anything else.
var (
	errForeign  = errors.New("it is not weir's; delete it or use another prefix")
	errCalendar = errors.New("the calendars of this machine and of the server differ")
)

// run runs verb for ops[which] on one node in one round trip, writes their
// results, and returns the server's instant. When the script is not there yet
// or the calendar of this machine is off by periods, both known before
// anything is counted, it asks a second time.
func (p *program) run(ctx context.Context, c rueidis.Client, verb store.Verb, ops []store.Op, which []int, opts callOptions) (window.Instant, error) {
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	keys, err := p.keys(buf, ops, which)
	if err != nil {
		return 0, err
	}
	if opts.now != 0 {
		opts.near = opts.now
	} else if opts.near == 0 {
		opts.near = window.At(time.Now())
	}
	for attempt := 0; ; attempt++ {
		args, r := p.appendCall((*buf)[:0], verb, ops, which, opts)
		*buf = args
		reply, err := p.eval(ctx, c, p.scripts.of(r), keys, string(args))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", among(keys), err)
		}
		if len(reply) < replyHead {
			return 0, fmt.Errorf("%s: the script answers %q", among(keys), reply)
		}
		now := window.Instant(get7(reply[1:]))
		switch reply[0] {
		case statusDone:
			return now, p.results(reply[replyHead:], ops, which)
		case statusStale:
			return now, errStale
		case statusClock:
			if attempt == 0 {
				opts.near = now
				continue
			}
			return now, errCalendar
		default:
			return now, refused(reply, keys)
		}
	}
}

// eval runs a script, and gives it to a server that does not know it.
func (p *program) eval(ctx context.Context, c rueidis.Client, s *script, keys []string, args string) (string, error) {
	reply, err := c.Do(ctx, c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args).Build()).ToString()
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		return c.Do(ctx, c.B().Eval().Script(s.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args).Build()).ToString()
	}
	return reply, err
}

// keys are the names of all keys of ops[which]; those with members have three.
func (p *program) keys(buf *[]byte, ops []store.Op, which []int) ([]string, error) {
	keys := make([]string, 0, 3*len(which))
	var first [8]int
	starts := first[:0]
	for _, i := range which {
		op := &ops[i]
		*buf = p.names.append((*buf)[:0], op)
		key := string(*buf)
		for _, at := range starts {
			if keys[at] == key {
				return nil, store.ErrRepeated
			}
		}
		starts = append(starts, len(keys))
		keys = append(keys, key)
		if op.Limit.Distinct() {
			keys = append(keys, key+membersSuffix, key+usesSuffix)
		}
	}
	return keys, nil
}

// appendCall appends the argument of the script, and returns which script reads
// it.
func (p *program) appendCall(b []byte, verb store.Verb, ops []store.Op, which []int, opts callOptions) ([]byte, recipe) {
	b = put7(b, opts.now, opts.deadline)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(which)))
	first := codeOf(ops[which[0]].Limit)
	r := recipe{kind: kindOf(first), many: len(which) > 1}
	mixed := r.kind.wraps
	r.fast = r.kind.fast
	for _, i := range which {
		code, asked := codeOf(ops[i].Limit), ask(verb, &ops[i])
		b = p.appendOp(b, code, asked, &ops[i], opts.near)
		if code != first || asked == askRefund {
			mixed = true
		}
		if asked > askRecord || r.many && asked > askEnforce {
			r.fast = false
		}
	}
	if mixed {
		return b, recipe{many: r.many}
	}
	return b, r
}

// results takes the results out of a reply.
func (p *program) results(reply string, ops []store.Op, which []int) error {
	if len(reply) != replyOp*len(which) {
		return fmt.Errorf("the script answers %d bytes for %d ops", len(reply), len(which))
	}
	for n, i := range which {
		r := reply[n*replyOp:]
		ops[i].Result = result(ops[i].Limit, get7(r), get7(r[7:]), get7(r[14:]), get7(r[21:]))
	}
	return nil
}

// never is the wait in a reply for hits that will not fit.
const never = window.MaxHits + 1

// result is what a window says with these numbers, the waits in microseconds.
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
	return r
}

// refused says what stands under a key that the script cannot read.
func refused(reply string, keys []string) error {
	const head = replyHead + 4
	if len(reply) < head {
		return fmt.Errorf("the script answers %q", reply)
	}
	n := int(binary.LittleEndian.Uint32([]byte(reply[replyHead:]))) - 1
	if n < 0 || n >= len(keys) {
		return fmt.Errorf("the script answers %q", reply)
	}
	if reply[0] == statusForeign {
		return fmt.Errorf("key %q: %s: %w", keys[n], reply[head:], errForeign)
	}
	return &StateError{Key: keys[n], Head: reply[head:]}
}

// StateError says that what is kept under a key cannot be read: another
// program wrote it, or a newer version of this one.
type StateError struct {
	Key  string
	Head string // the first two bytes: version and kind
}

func (e *StateError) Error() string {
	return fmt.Sprintf("key %q holds no state that this version can read: it begins with %q; delete it or use another prefix", e.Key, e.Head)
}

// among names the keys of a call for an error.
func among(keys []string) string {
	if len(keys) == 1 {
		return fmt.Sprintf("key %q", keys[0])
	}
	return fmt.Sprintf("key %q and %d more", keys[0], len(keys)-1)
}
