package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// both is the context of a decision that ends with a shared one, or with the
// context of its caller if that ends earlier. Most calls need only their deadline
// and whether the decision has ended. Then neither a timer nor a channel is made
// for them.
type both struct {
	shared *decision
	caller context.Context

	making sync.Mutex
	made   atomic.Pointer[whole] // on first use
}

// whole is a both as an ordinary context.
type whole struct {
	context.Context
	cancel context.CancelCauseFunc
	leave  func() bool // ends the wait for the shared decision
}

// whole returns b as an ordinary context.
func (b *both) whole() *whole {
	if w := b.made.Load(); w != nil {
		return w
	}
	b.making.Lock()
	defer b.making.Unlock()
	if w := b.made.Load(); w != nil {
		return w
	}
	w := &whole{}
	w.Context, w.cancel = context.WithCancelCause(b.caller)
	if b.shared.Err() != nil {
		w.cancel(errTimeout)
	}
	w.leave = context.AfterFunc(b.shared, func() { w.cancel(errTimeout) })
	b.made.Store(w)
	return w
}

func (b *both) stop() {
	if w := b.made.Load(); w != nil {
		w.leave()
		w.cancel(nil)
	}
}

// Deadline implements [context.Context].
func (b *both) Deadline() (time.Time, bool) {
	if earlier, ok := b.caller.Deadline(); ok && earlier.Before(b.shared.end) {
		return earlier, true
	}
	return b.shared.end, true
}

// Done implements [context.Context].
func (b *both) Done() <-chan struct{} { return b.whole().Done() }

// Err implements [context.Context].
func (b *both) Err() error {
	if w := b.made.Load(); w != nil {
		err := w.Err()
		if err != nil && TimedOut(w.Context) {
			return context.DeadlineExceeded
		}
		return err
	}
	if err := b.caller.Err(); err != nil {
		return err
	}
	return b.shared.Err()
}

// timedOut reports what [TimedOut] reports of b.
func (b *both) timedOut() bool {
	if w := b.made.Load(); w != nil {
		return TimedOut(w.Context)
	}
	return b.caller.Err() == nil && TimedOut(b.shared)
}

// Value implements [context.Context].
func (b *both) Value(key any) any {
	switch key {
	case endKey{}:
		return b
	case timeoutKey{}:
		return b.caller.Value(key)
	}
	return b.whole().Value(key)
}

// sharedEnd returns the shared decision whose deadline is that of ctx, or nil.
func sharedEnd(ctx context.Context) *decision {
	switch ctx := ctx.(type) {
	case *decision:
		return ctx
	case *both:
		if earlier, ok := ctx.caller.Deadline(); !ok || !earlier.Before(ctx.shared.end) {
			return ctx.shared
		}
	}
	return nil
}

// ends says how ctx ends: with the shared decision, unless that is nil; when gone is
// closed, unless that is nil; and, where watched is set, when Err returns an error, which
// is soon enough to be noticed by a look now and then.
func ends(ctx context.Context) (shared *decision, gone <-chan struct{}, watched bool) {
	switch ctx := ctx.(type) {
	case *decision:
		return ctx, nil, false
	case *both:
		if sharedEnd(ctx) != nil {
			return ctx.shared, nil, ctx.caller.Done() != nil
		}
		return ctx.shared, ctx.caller.Done(), false
	}
	return nil, ctx.Done(), false
}
