package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Timer makes the contexts that end decisions after a time-out. The zero value is
// ready; it is safe for concurrent use.
type Timer struct{ shared atomic.Pointer[decision] }

// decision is a context that ends at its end, and not earlier. All decisions that
// begin in the same millisecond share one: a timer for each of them would cost more
// than the rest of a call.
type decision struct {
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
func begin(timeout time.Duration) *decision {
	d := &decision{timeout: timeout, born: elapsed(), end: time.Now().Add(timeout)}
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
func (d *decision) Deadline() (time.Time, bool) { return d.end, true }

// Err implements [context.Context].
func (d *decision) Err() error {
	err := d.Context.Err()
	if err != nil && TimedOut(d.Context) {
		return context.DeadlineExceeded
	}
	return err
}

// Value implements [context.Context].
func (d *decision) Value(key any) any {
	if key == (endKey{}) {
		return d
	}
	return d.Context.Value(key)
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
		b := &both{shared: shared, caller: ctx}
		return b, b.stop
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
	if b, ok := ctx.(*both); ok {
		return b.timedOut()
	}
	return errors.Is(context.Cause(ctx), errTimeout)
}
