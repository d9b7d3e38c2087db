package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Counter counts without a limit. Make one with [NewCounter]. Its methods are
// safe for concurrent use.
type Counter struct{ limiter *Limiter }

// NewCounter makes a counter over w: a cells window for counts over the last
// while and a history, a fixed or calendar one for the current period. A
// sliding window is counted in cells of the same length.
func NewCounter(w window.Window, options ...Option) (*Counter, error) {
	if w.Kind == window.KindSliding {
		w = window.Cells(w.Length, 0)
	}
	m, err := NewLimiter(Limit{Quota: window.Unlimited, Window: w}, options...)
	if err != nil {
		return nil, err
	}
	return &Counter{m}, nil
}

// Add counts n hits and returns how many are in the window now.
func (c *Counter) Add(ctx context.Context, key string, n int64) (int64, error) {
	r, err := c.limiter.Record(ctx, key, n)
	return r.Used, err
}

// Count is the number of hits in the last d, at most the window's length. In a
// cells window it is an estimate: the oldest cell is weighed by its overlap.
func (c *Counter) Count(ctx context.Context, key string, d time.Duration) (int64, error) {
	r, err := c.read(ctx, key)
	if err != nil {
		return 0, err
	}
	return r.Count(d), nil
}

// History is the hits by cell, oldest first, up to the current one; empty when
// there are none.
func (c *Counter) History(ctx context.Context, key string) ([]window.Cell, error) {
	r, err := c.read(ctx, key)
	if err != nil {
		return nil, err
	}
	return r.History, nil
}

func (c *Counter) read(ctx context.Context, key string) (window.Reading, error) {
	m := c.limiter
	s, now, err := m.store.Peek(ctx, &store.Op{Space: &m.space, Limit: m.limit, Key: []byte(key)})
	if err != nil {
		return window.Reading{}, fmt.Errorf("weir: count: %w", err)
	}
	return m.limit.Read(s, now), nil
}

// Reset forgets the key.
func (c *Counter) Reset(ctx context.Context, key string) error { return c.limiter.Reset(ctx, key) }

// Close frees the counter's memory, unless its store was given.
func (c *Counter) Close() error { return c.limiter.Close() }
