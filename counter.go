package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Counter counts hits per key without a limit. Make one with [NewCounter]; the
// methods of a nil or zero Counter return an error. Its methods are safe for
// concurrent use.
type Counter struct{ limiter *Limiter }

// NewCounter returns a counter over w: a cells window counts over the last
// while and keeps a history, a fixed or calendar one counts in the current
// period. A sliding window is counted in cells of the same length.
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

// Add counts n hits, at least 1, and returns how many are in the window now.
// When a store over the network is out of reach and there is no local one, the
// error is an outage and nothing was counted.
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
// In a cells window it is an estimate: the oldest cell counts by the part of it
// that is inside. While the store is out of reach and there is a local one
// ([WithLocal]), Count and History answer from that.
func (c *Counter) Count(ctx context.Context, key string, d time.Duration) (int64, error) {
	r, err := c.read(ctx, key)
	return r.Count(d), err
}

// History returns the hits by cell, oldest first, up to the current cell. It
// is empty when there are none.
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

// Forget drops what is counted for the key.
func (c *Counter) Forget(ctx context.Context, key string) error {
	if err := c.ready(); err != nil {
		return err
	}
	return c.limiter.Forget(ctx, key)
}

// Close frees the counter's memory, unless its store was given; see
// [Limiter.Close].
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	return c.limiter.Close()
}

// ready returns an error that says what to do about a counter that was not
// made by NewCounter.
func (c *Counter) ready() error {
	if c != nil && c.limiter != nil {
		return nil
	}
	return fault.Newf("counter", "nil or zero: make one with weir.NewCounter")
}
