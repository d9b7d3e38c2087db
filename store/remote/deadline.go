package remote

import (
	"context"
	"sync"
	"time"
)

const (
	// brief is the longest time-out with which decisions do not see that their ctx is
	// cancelled.
	brief = 50 * time.Millisecond
	// lagging is how late a timer fires on a machine that has not run the program
	// for some time. Answers may have arrived meanwhile: they get as much time
	// again to be read, and graceAtMost.
	lagging     = time.Millisecond
	graceAtMost = 10 * time.Millisecond
)

// decisionContext is the context of a decision: it ends when its time-out is over, or with that of its caller. With a
// time-out of at most brief, which the default is, a caller whose context has no deadline is not watched: cancelling
// it then ends nothing. A lone call needs the deadline and the error only; a timer begins when something waits for
// the end.
type decisionContext struct {
	caller context.Context // the background if the caller is not watched
	end    time.Time

	mu     sync.Mutex
	waited context.Context    // guarded by mu; nil until something waits
	cancel context.CancelFunc // guarded by mu; of waited
	timer  *time.Timer        // guarded by mu; calls cancel
}

// Deadline implements [context.Context].
func (d *decisionContext) Deadline() (time.Time, bool) {
	if earlier, ok := d.caller.Deadline(); ok && earlier.Before(d.end) {
		return earlier, true
	}
	return d.end, true
}

// Done implements [context.Context].
func (d *decisionContext) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waited == nil {
		d.waited, d.cancel = context.WithCancel(d.caller)
		d.timer = time.AfterFunc(time.Until(d.end), func() {
			if lag := time.Since(d.end); lag > lagging {
				time.AfterFunc(min(lag, graceAtMost), d.cancel)
				return
			}
			d.cancel()
		})
	}
	return d.waited.Done()
}

// Err implements [context.Context].
func (d *decisionContext) Err() error {
	if err := d.caller.Err(); err != nil {
		return err
	}
	if time.Now().Before(d.end) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements [context.Context].
func (d *decisionContext) Value(key any) any {
	if key == (decisionKey{}) {
		return d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waited != nil {
		return d.waited.Value(key)
	}
	return d.caller.Value(key)
}

func (d *decisionContext) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waited != nil {
		d.timer.Stop()
		d.cancel()
	}
}

// decisionKey is the key of contexts that end with a decision, and timeoutKey that of
// another time-out than the store's.
type (
	decisionKey struct{}
	timeoutKey  struct{}
)

// WithTimeout returns ctx with a time-out for the decisions in it, instead of that of the
// stores that decide them.
func WithTimeout(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// Within returns ctx with the end of a decision that begins now: after timeout;
// 0 is none. When ctx has one already, from an earlier call, it stays as it is.
// The caller calls the function when it is done. A call that runs into the time-out counts
// against the server, unlike one whose ctx is done.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 || ctx.Value(decisionKey{}) != nil {
		return ctx, nothing
	}
	if other, ok := ctx.Value(timeoutKey{}).(time.Duration); ok {
		timeout = other
	}
	d := &decisionContext{caller: ctx, end: time.Now().Add(timeout)}
	if _, ends := ctx.Deadline(); !ends && timeout <= brief { // so it is by default: the caller's cancellation is not seen
		d.caller = context.Background()
	}
	return d, d.stop
}

// WithinPart returns ctx with an end after numerator/denominator of the time that
// it has left, or of timeout when it has no end; 0 is none.
func WithinPart(ctx context.Context, timeout time.Duration, numerator, denominator int64) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(end), time.Nanosecond)
	}
	if timeout == 0 {
		return ctx, nothing
	}
	d := &decisionContext{caller: ctx, end: time.Now().Add(timeout * time.Duration(numerator) / time.Duration(denominator))}
	return d, d.stop
}

func nothing() {}

// CallerOf returns the context that can end ctx, which [Within] or [WithinPart] has returned, before its deadline.
func CallerOf(ctx context.Context) context.Context {
	for {
		d, ok := ctx.(*decisionContext)
		if !ok {
			return ctx
		}
		ctx = d.caller
	}
}

// TimedOut reports whether ctx is done because a time-out of this package is over.
func TimedOut(ctx context.Context) bool {
	d, ok := ctx.Value(decisionKey{}).(*decisionContext)
	return ok && d.Err() != nil && (d.caller.Err() == nil || TimedOut(d.caller))
}
