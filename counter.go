package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Counter counts hits per key without a limit. Make one with [NewCounter]. The
// methods of a nil or zero Counter return an error, except Close, which does
// nothing. A Counter is safe for concurrent use.
type Counter struct{ limiter *Limiter }

// NewCounter returns a counter of the hits in w. A cells window counts the hits
// in its length up to now, and keeps a history by cell. A fixed or calendar
// window counts the hits in its current period. A sliding window is replaced by
// a cells window of the same length with 60 cells. A bucket is refused.
func NewCounter(w window.Window, options ...LimiterOption) (*Counter, error) {
	if w.Kind == window.KindSliding {
		w = window.Cells(w.Length, 0)
	}
	m, err := newLimiter(Limit{Quota: window.Unlimited, Window: w}, options)
	if err != nil {
		return nil, err
	}
	m.mustCount = true
	return &Counter{m}, nil
}

// Add counts n hits, at least 1, and returns how many are in the window now. In
// an outage that no local store answers (see [WithOutage]) the error wraps a
// [*store.OutageError].
func (c *Counter) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, fault.Newf("hits", "%d: want at least 1; Count reads without counting", n)
	}
	r, err := c.limiter.Record(ctx, key, n)
	return r.Used, err
}

// Count returns the number of hits in the last d, at most the window's length.
// The number is an estimate: the oldest cell counts in proportion to the part of
// it that is in the last d. A fixed or calendar window ignores d: Count returns
// the hits of the current period. In an outage Count and History read the local
// store ([WithLocal]), if there is one and the policy is local.
func (c *Counter) Count(ctx context.Context, key string, d time.Duration) (int64, error) {
	r, err := c.read(ctx, key)
	return r.Count(d), err
}

// History returns the hits by cell, oldest first, up to the current cell. A
// fixed or calendar window has one cell, its current period. History is empty
// when the window holds no hits.
func (c *Counter) History(ctx context.Context, key string) ([]window.Cell, error) {
	r, err := c.read(ctx, key)
	return r.History, err
}

func (c *Counter) read(ctx context.Context, key string) (window.Reading, error) {
	if err := c.ready(); err != nil {
		return window.Reading{}, err
	}
	m := c.limiter
	r, _, err := m.driver.Read(ctx, m.op(key), rule.Outage(m.policy))
	if err != nil {
		return window.Reading{}, fmt.Errorf("weir: count: %w", err)
	}
	return r, nil
}

// Forget drops the counter of the key, with its history.
func (c *Counter) Forget(ctx context.Context, key string) error {
	if err := c.ready(); err != nil {
		return err
	}
	return c.limiter.Forget(ctx, key)
}

// Close closes the counter's store and frees its memory, unless the store was
// given with [WithStore]. See [Limiter.Close]. Closing twice is safe.
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	return c.limiter.Close()
}

// ready returns the error of a counter that was not made by NewCounter.
func (c *Counter) ready() error {
	if c != nil && c.limiter != nil {
		return nil
	}
	return fault.Newf("counter", "nil or zero: make one with weir.NewCounter")
}
