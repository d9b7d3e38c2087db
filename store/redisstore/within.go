package redisstore

import (
	"context"
	"time"
)

// sharedTime is the context of all calls that begin at about the same time: a
// timer for each of them would cost more than the rest of a call.
type sharedTime struct {
	context.Context
	cancel context.CancelFunc // not needed, its time ends soon
	born   time.Duration
}

// brief is up to which time-out calls share their time. They then see no
// cancelling, and have up to a tenth less than the time-out.
const brief = 50 * time.Millisecond

// within is ctx for as long as a call may take.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := s.config.Timeout
	if timeout == 0 {
		return ctx, nothing
	}
	if _, earlier := ctx.Deadline(); earlier || timeout > brief {
		return context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	now := elapsed()
	shared := s.shared.Load()
	if shared == nil || now-shared.born > timeout/10 {
		shared = &sharedTime{born: now}
		shared.Context, shared.cancel = context.WithTimeoutCause(context.Background(), timeout, errTimeout)
		s.shared.Store(shared)
	}
	return shared.Context, nothing
}

func nothing() {}
