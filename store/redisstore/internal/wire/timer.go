package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Timer makes the contexts that end calls after a time-out. The zero value is
// ready; it is safe for concurrent use.
type Timer struct{ shared atomic.Pointer[sharedTime] }

// sharedTime is the context of all calls that begin at about the same time: a
// timer for each of them would cost more than the rest of a call.
type sharedTime struct {
	context.Context
	cancel context.CancelFunc // never called: the time-out is near
	born   time.Duration
}

// brief is the longest time-out with which calls share a timer. They do not see
// when ctx is cancelled, and have up to a tenth less than the time-out.
const brief = 50 * time.Millisecond

// Within returns ctx with an end after timeout; 0 is none. The caller calls the
// function when it is done.
func (t *Timer) Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, nothing
	}
	if _, earlier := ctx.Deadline(); earlier || timeout > brief {
		return Within(ctx, timeout)
	}
	now := elapsed()
	shared := t.shared.Load()
	if shared == nil || now-shared.born > timeout/10 {
		shared = &sharedTime{born: now}
		shared.Context, shared.cancel = Within(context.Background(), timeout)
		t.shared.Store(shared)
	}
	return shared.Context, nothing
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

// errTimeout is why the context of a call is done when the time-out is over, and
// not the caller's own time.
var errTimeout = errors.New("no answer in time")
