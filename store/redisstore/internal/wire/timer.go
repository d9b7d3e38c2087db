package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Timer makes the contexts that end decisions after a time-out. The zero value is
// ready; it is safe for concurrent use.
type Timer struct {
	shared atomic.Pointer[sharedDeadline]
}

// sharedDeadline is a context that ends at its deadline, and not earlier. All decisions
// that begin in the same millisecond share one: a timer for each of them would cost more
// than the rest of a call.
type sharedDeadline struct {
	context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration
	born    time.Duration
	end     time.Time
}

const (
	// brief is the longest time-out with which decisions do not see that their ctx is
	// cancelled.
	brief = 50 * time.Millisecond
	// sharedFor is how long a shared timer is used for new decisions. They end up
	// to that much after their time-out, and never before it.
	sharedFor = time.Millisecond
	// lagging is how late a timer fires on a machine that has not run the program
	// for some time. Answers may have arrived meanwhile: they get as much time
	// again to be read, and graceAtMost.
	lagging     = time.Millisecond
	graceAtMost = 10 * time.Millisecond
)

// begin returns the context of decisions that begin now and may take timeout.
func begin(timeout time.Duration) *sharedDeadline {
	d := &sharedDeadline{timeout: timeout, born: elapsed(), end: time.Now().Add(timeout)}
	d.Context, d.cancel = context.WithCancelCause(context.Background())
	time.AfterFunc(timeout, func() {
		if lag := elapsed() - d.born - timeout; lag > lagging {
			time.AfterFunc(min(lag, graceAtMost), func() { d.cancel(errTimeout) })
			return
		}
		d.cancel(errTimeout)
	})
	return d
}

// Deadline implements [context.Context].
func (d *sharedDeadline) Deadline() (time.Time, bool) { return d.end, true }

// Err implements [context.Context].
func (d *sharedDeadline) Err() error { return deadlineError(d.Context) }

// Value implements [context.Context].
func (d *sharedDeadline) Value(key any) any {
	if key == (endKey{}) {
		return d
	}
	return d.Context.Value(key)
}

// deadlineError returns the error of ctx, which a time-out ends by a cancellation.
func deadlineError(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return context.DeadlineExceeded
	}
	return err
}

// ownDeadline is the context of a decision whose caller has a deadline or can cancel it:
// it ends with the first of these and the shared deadline. Most calls ask for the deadline
// and the error only, so it becomes an ordinary context when one asks for more.
type ownDeadline struct {
	caller context.Context
	shared *sharedDeadline
	merged atomic.Pointer[mergedContext]
}

type mergedContext struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   func() bool // ends the wait for the shared deadline
}

func (o *ownDeadline) merge() context.Context {
	if m := o.merged.Load(); m != nil {
		return m
	}
	m := &mergedContext{}
	m.Context, m.cancel = context.WithCancelCause(o.caller)
	if o.shared.Err() != nil {
		m.cancel(errTimeout)
	}
	m.stop = context.AfterFunc(o.shared, func() { m.cancel(errTimeout) })
	if !o.merged.CompareAndSwap(nil, m) {
		m.end()
	}
	return o.merged.Load()
}

func (m *mergedContext) end() {
	m.stop()
	m.cancel(nil)
}

func (o *ownDeadline) cancel() {
	if m := o.merged.Load(); m != nil {
		m.end()
	}
}

// Deadline implements [context.Context].
func (o *ownDeadline) Deadline() (time.Time, bool) {
	if earlier, ok := o.caller.Deadline(); ok && earlier.Before(o.shared.end) {
		return earlier, true
	}
	return o.shared.end, true
}

// Done implements [context.Context].
func (o *ownDeadline) Done() <-chan struct{} { return o.merge().Done() }

// Err implements [context.Context].
func (o *ownDeadline) Err() error {
	if m := o.merged.Load(); m != nil {
		return deadlineError(m)
	}
	if err := o.caller.Err(); err != nil {
		return err
	}
	return o.shared.Err()
}

// Value implements [context.Context].
func (o *ownDeadline) Value(key any) any {
	switch key {
	case endKey{}:
		return o
	case timeoutKey{}:
		return o.caller.Value(key)
	}
	return o.merge().Value(key)
}

// callerOf returns the context that can end ctx before its deadline, or nil.
func callerOf(ctx context.Context) context.Context {
	switch ctx := ctx.(type) {
	case *sharedDeadline:
		return nil
	case *ownDeadline:
		return ctx.caller
	}
	return ctx
}

// endKey is the key of contexts that end with a decision, and timeoutKey that of
// another time-out than the store's.
type (
	endKey     struct{}
	timeoutKey struct{}
)

// WithTimeout returns ctx with a time-out for the decisions in it, in place of
// the one that [Timer.Within] gets.
func WithTimeout(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// Within returns ctx with the end of a decision that begins now: after timeout;
// 0 is none. When ctx has one already, from an earlier call, it stays as it is.
// The caller calls the function when it is done.
func (t *Timer) Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 || ctx.Value(endKey{}) != nil {
		return ctx, nothing
	}
	if other, ok := ctx.Value(timeoutKey{}).(time.Duration); ok {
		timeout = other
	}
	shared := t.shared.Load()
	if shared == nil || shared.timeout != timeout+sharedFor || elapsed()-shared.born > sharedFor {
		shared = begin(timeout + sharedFor)
		t.shared.Store(shared)
	}
	if _, ends := ctx.Deadline(); ends || timeout > brief && ctx.Done() != nil {
		o := &ownDeadline{caller: ctx, shared: shared}
		return o, o.cancel
	}
	return shared, nothing
}

func nothing() {}

// Within returns ctx with an end after timeout, with a timer of its own; 0 is
// none. A call that runs into it counts against the node, unlike one whose ctx is
// done.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, nothing
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// WithinPart returns ctx with an end after numerator/denominator of the time that
// it has left, or of timeout when it has no end.
func WithinPart(ctx context.Context, timeout time.Duration, numerator, denominator int64) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(end), time.Nanosecond)
	}
	return Within(ctx, timeout*time.Duration(numerator)/time.Duration(denominator))
}

// errTimeout is why the context of a call is done when the time-out is over, and
// not the caller's own time.
var errTimeout = errors.New("no answer in time")

// TimedOut reports whether ctx is done because a time-out of this package is over.
func TimedOut(ctx context.Context) bool {
	if o, ok := ctx.(*ownDeadline); ok && o.merged.Load() == nil {
		return o.caller.Err() == nil && TimedOut(o.shared)
	}
	return errors.Is(context.Cause(ctx), errTimeout)
}
