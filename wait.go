package weir

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ErrWouldWait is returned by [Limiter.Wait] when waiting cannot help: the hits do not
// fit before the deadline of the context, or never.
var ErrWouldWait = errors.New("weir: the hits do not fit before the context ends")

// Wait sleeps until the limit admits one hit, counts it and returns nil. It is WaitN
// with n = 1.
func (m *Limiter) Wait(ctx context.Context, key string) error { return m.WaitN(ctx, key, 1) }

// WaitN sleeps until the limit admits n hits together, counts them and returns nil.
//
// Callers that wait for one key are admitted in the order in which they came, each when its
// hits fit: nobody overtakes a caller who waits for more hits. A caller whose context ends
// leaves its place to the next one. Allow does not queue, so it can take hits that somebody
// waits for. Refund and Forget wake nobody: the first caller asks again when the wait is over
// that its last denial stated.
//
// It returns [ErrWouldWait] at once if the hits never fit, or if they cannot fit before ctx's
// deadline with the callers ahead, and [ErrTooManyWaiting] if it would have to wait and too many callers do already.
// It returns ctx.Err() if ctx is done first. After an error nothing was counted, except as for
// any call of a store over the network whose context ends meanwhile.
//
// Each process has its own queues. If several share a store, the callers who are first in
// their process compete, and the store decides in the order in which their calls reach
// it; so a process with more callers gets no more of the quota than another, and no process is
// certain to get a part of it. During an outage the outage policy decides, as for Allow; while
// it denies, the first caller of each key asks again when RetryAfter is over.
func (m *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	var r Result
	if m == nil || !m.waiting.queued(key) {
		if err := m.do(ctx, store.Take, key, "", n, &r); err != nil || r.Allowed {
			return err
		}
	} else if n < 1 || m.distinct {
		return m.refused(ctx, store.Take, n)
	} else if err := ctx.Err(); err != nil {
		return err
	}
	return m.wait(ctx, key, n, r.RetryAfter)
}

// wait queues for n hits, and counts them. after is the wait of a denial that the caller has
// got, or 0.
func (m *Limiter) wait(ctx context.Context, key string, n int64, after time.Duration) error {
	if !fitsBefore(ctx, after) || m.neverFit(n) {
		return ErrWouldWait
	}
	me, ahead, err := m.waiting.join(key, n)
	if err != nil {
		return err
	}
	defer m.waiting.leave(key, me)
	if ahead >= 0 {
		if least, err := m.leastWait(ctx, key, ahead, n); err != nil {
			return err
		} else if !fitsBefore(ctx, least) {
			return ErrWouldWait
		}
		select {
		case <-me.turn:
			after = 0
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		var r Result
		if err := m.do(ctx, store.Take, key, "", n, &r); err != nil || r.Allowed {
			return err
		}
		if !fitsBefore(ctx, r.RetryAfter) {
			return ErrWouldWait
		}
		timer.Reset(r.RetryAfter)
	}
}

// neverFit reports whether n hits are more than fit at once. Under a limit after a count some of
// them may be free.
func (m *Limiter) neverFit(n int64) bool {
	for _, c := range m.limits {
		if c.limit.After.Count == 0 && n > c.limit.Capacity() {
			return true
		}
	}
	return false
}

// fitsBefore reports whether a wait can end before ctx does.
func fitsBefore(ctx context.Context, wait time.Duration) bool {
	end, ends := ctx.Deadline()
	return wait != window.Never && (!ends || time.Until(end) >= wait)
}

// leastWait returns a lower bound of the wait for n hits behind others of callers ahead. It is 0
// without a deadline, which it is for, and in an outage.
func (m *Limiter) leastWait(ctx context.Context, key string, ahead, n int64) (least time.Duration, err error) {
	if _, ends := ctx.Deadline(); !ends {
		return 0, nil
	}
	a := m.call(store.Check, key, "", 0)
	defer m.end(a)
	for i := range a.ops {
		a.ops[i].N = togetherHits(m.limits[i].limit, ahead, n)
	}
	if m.driver.Run(ctx, &a.task, nil); a.task.Err != nil || a.task.Outage != nil {
		return 0, a.task.Err
	}
	for i := range a.ops {
		own := leastUnder(m.limits[i].limit, &a.ops[i].Result, ahead, n)
		if own == window.Never {
			return own, nil
		}
		least = max(least, own)
	}
	return least, nil
}

// togetherHits returns how many hits leastWait needs a check of, for n hits behind those of
// callers ahead.
func togetherHits(l *window.Compiled, ahead, n int64) int64 {
	all, most := ahead+n, l.Capacity()
	switch kind := l.Window.Kind; {
	case l.After.Count > 0:
		return n // of those ahead some may be free
	case all > most && (kind == window.KindSliding || kind == window.KindCells):
		return (all-1)%most + 1
	}
	return min(all, most)
}

// leastUnder returns a lower bound of the wait for n hits behind those of callers ahead, under one
// limit. r is the answer to a check of togetherHits.
func leastUnder(l *window.Compiled, r *window.Result, ahead, n int64) time.Duration {
	all, most, length := ahead+n, l.Capacity(), l.Window.Length
	if all <= most || l.After.Count > 0 || r.RetryAfter == window.Never {
		return r.RetryAfter
	}
	switch l.Window.Kind {
	case window.KindSliding, window.KindCells:
		// The hits that came most before the last one have to leave, and each stays for the length.
		return r.RetryAfter + times(length, (all-1)/most)
	case window.KindFixed, window.KindAligned:
		// What remains goes into this window, and the rest into the next ones. A fixed window that
		// is unused begins with the first hit.
		if r.Used == 0 && l.Window.Kind == window.KindFixed {
			return times(length, (all-1)/most)
		}
		return r.RetryAfter + times(length, (all-r.Remaining-1)/most)
	case window.KindBucket:
		more := all - most
		hi, lo := bits.Mul64(uint64(more%l.Quota), uint64(length))
		part, _ := bits.Div64(hi, lo, uint64(l.Quota))
		// RetryAfter was rounded up to a microsecond.
		return max(r.RetryAfter-time.Microsecond, 0) + times(length, more/l.Quota) + time.Duration(part)
	case window.KindEver:
		return window.Never
	}
	return r.RetryAfter // periods of the calendar differ in length
}

// times returns n lengths, at most the longest window.
func times(length time.Duration, n int64) time.Duration {
	if n > int64(window.MaxLength/length) {
		return window.MaxLength
	}
	return length * time.Duration(n)
}
