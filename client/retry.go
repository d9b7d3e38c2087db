package client

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/store"
)

// The pause before an attempt doubles from retryPause on, and is at most retryMost. Each is random, from half of that on.
const (
	retryPause = 20 * time.Millisecond
	retryMost  = time.Second
)

// retry sends r until it has an answer, under one idempotency key.
func (c *Client) retry(ctx context.Context, verb store.Verb, r *weir.Request, d *weir.Decision) error {
	own := *r
	if own.IdempotencyKey == "" {
		own.IdempotencyKey = rand.Text()
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(c.timeout)
	}
	lost := false // an attempt may have counted
	for left, pause := c.retries, retryPause; ; left, pause = left-1, min(2*pause, retryMost) {
		attempt, cancel := context.WithTimeout(ctx, time.Until(until)/time.Duration(left+1))
		err := c.once(attempt, verb, &own, d)
		cancel()
		if !lost && r.IdempotencyKey == "" && isFull(err) {
			rest, cancel := context.WithDeadline(ctx, until)
			err = c.once(rest, verb, r, d)
			cancel()
			return err
		}
		if lost {
			err = counted(err)
		}
		lost = lost || !Uncounted(err)
		if err == nil || left == 0 || ctx.Err() != nil || !isLost(err) {
			return err
		}
		wait := min(pause/2+mathrand.N(pause/2+1), time.Until(until)/2) //nolint:gosec // no secret
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		case <-c.alive.Done():
			return err
		}
	}
}

// counted returns err as the error of a call that may have counted in an earlier attempt.
func counted(err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.uncounted {
		return err
	}
	own := *e
	own.uncounted = false
	return &own
}

// isFull reports whether the service has no room for the answer under another key.
func isFull(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == weirv1.ErrorReason_IDEMPOTENCY_FULL.String()
}

// isLost reports whether another attempt may get the answer that err stands for.
func isLost(err error) bool {
	var e *Error
	return errors.As(err, &e) && !errors.Is(err, weir.ErrClosed) && (e.code == codes.Unavailable || e.code == codes.DeadlineExceeded)
}
