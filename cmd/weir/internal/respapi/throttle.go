package respapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/window"
)

// throttle is the limit of a CL.THROTTLE: count hits in period seconds on average, and
// burst at once.
type throttle struct{ burst, count, period int64 }

// throttleCall is one CL.THROTTLE, and its answer.
type throttleCall struct {
	limiter *weir.Limiter
	key     string
	n       int64   // 0: a check
	whole   float64 // nanoseconds in which the whole burst drains

	result weir.Result
	err    error
}

// throttles are the limiters of CL.THROTTLE in one namespace, by their limits. All count
// in one store, and keys of limits with the same period share their counters. It is safe
// for concurrent use.
type throttles struct {
	open func(weir.Limit) (*weir.Limiter, error)

	mu       sync.RWMutex
	limiters map[throttle]*throttleLimiter // nil: closed; guarded by mu
	periods  map[int64]int                 // limiters by period; guarded by mu
	swept    int64                         // when sweep ran last; guarded by mu
	closing  sync.WaitGroup
}

// throttleLimiter is the limiter of one limit.
type throttleLimiter struct {
	*weir.Limiter
	used atomic.Int64 // when a call used it last, in seconds since 1970; dropped: never again
	idle int64        // seconds without a call after which its counters are empty
}

// dropped is the time of a limiter that calls must not use any more.
const dropped = -1

// use records that a call uses m, and reports whether it may.
func (m *throttleLimiter) use(now int64) bool {
	before := m.used.Load()
	return before != dropped && (before >= now || m.used.CompareAndSwap(before, now) || m.used.Load() != dropped)
}

// Resource limits of the limits of one namespace. Each period has its own table of keys.
const (
	maxThrottles = 10_000
	maxPeriods   = 256
)

// maxThrottle is the largest argument of CL.THROTTLE.
const maxThrottle = 1 << 40

// throttlesOf returns the limiters of a namespace. It drops those of namespaces that no
// longer exist.
func (s *Server) throttlesOf(n *namespace.Namespace) *throttles {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.throttles[n]
	if t == nil {
		for other, of := range s.throttles {
			if other.Gone() {
				delete(s.throttles, other)
				s.group.Go(of.close)
			}
		}
		open := func(l weir.Limit) (*weir.Limiter, error) { return s.c.Throttle(n.Name(), l) }
		t = &throttles{open: open, limiters: map[throttle]*throttleLimiter{}, periods: map[int64]int{}}
		s.throttles[n] = t
	}
	return t
}

// get returns the limiter of a limit for a call at now, in seconds since 1970.
func (t *throttles) get(l throttle, now int64) (*throttleLimiter, error) {
	t.mu.RLock()
	m := t.limiters[l]
	t.mu.RUnlock()
	if m != nil && m.use(now) {
		return m, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.limiters[l]; m != nil && m.use(now) {
		return m, nil
	}
	if t.limiters == nil {
		return nil, errors.New("the namespace is gone")
	}
	isNew := t.periods[l.period] == 0
	if len(t.limiters) >= maxThrottles || isNew && len(t.periods) >= maxPeriods {
		t.sweep(now)
	}
	switch {
	case isNew && len(t.periods) >= maxPeriods:
		return nil, fmt.Errorf("more than %d different periods are in use", maxPeriods)
	case len(t.limiters) >= maxThrottles:
		return nil, fmt.Errorf("more than %d different limits are in use", maxThrottles)
	}
	limiter, err := t.open(weir.Bucket(l.count, time.Duration(l.period)*time.Second, l.burst))
	if err != nil {
		return nil, err
	}
	m = &throttleLimiter{Limiter: limiter, idle: int64(float64(l.burst)*float64(l.period)/float64(l.count)) + 2}
	m.used.Store(now)
	t.limiters[l] = m
	t.periods[l.period]++
	return m, nil
}

// sweep drops, at most once a second, the limiters whose counters are empty again. It
// needs mu.
func (t *throttles) sweep(now int64) {
	if now == t.swept {
		return
	}
	t.swept = now
	for l, m := range t.limiters {
		used := m.used.Load()
		if now-used < m.idle || !m.used.CompareAndSwap(used, dropped) {
			continue
		}
		delete(t.limiters, l)
		if t.periods[l.period]--; t.periods[l.period] == 0 {
			delete(t.periods, l.period)
		}
		t.closing.Go(func() { _ = m.Close() }) // its store stays open
	}
}

// close closes all limiters. Later calls get none.
func (t *throttles) close() {
	t.mu.Lock()
	all := t.limiters
	t.limiters = nil
	t.mu.Unlock()
	for _, m := range all {
		t.closing.Go(func() {
			m.used.Store(dropped)
			_ = m.Close() // its store stays open
		})
	}
	t.closing.Wait()
}

// runThrottles decides calls. Over a network, calls with different keys are batched.
func runThrottles(ctx context.Context, calls []throttleCall, shared bool) {
	if !shared || len(calls) == 1 {
		for i := range calls {
			calls[i].run(ctx)
		}
		return
	}
	byKey := make(map[string][]int, len(calls))
	for i := range calls {
		byKey[calls[i].key] = append(byKey[calls[i].key], i)
	}
	var group sync.WaitGroup
	for _, list := range byKey {
		group.Go(func() {
			for _, i := range list {
				calls[i].run(ctx)
			}
		})
	}
	group.Wait()
}

func (c *throttleCall) run(ctx context.Context) {
	if c.n == 0 {
		c.result, c.err = c.limiter.Check(ctx, c.key)
		// Nothing fits if an earlier, higher limit has admitted more than the burst.
		over := time.Duration(float64(c.result.ResetAfter) - c.whole)
		c.result.Allowed, c.result.RetryAfter = over < time.Microsecond, max(over, 0)
		return
	}
	c.result, c.err = c.limiter.AllowN(ctx, c.key, c.n)
}

// throttle adds a CL.THROTTLE to the batch.
func (c *conn) throttle(args []string) error {
	call, err := c.parseThrottle(args)
	if err == nil {
		b := &c.batch
		b.pending = append(b.pending, pending{cmdThrottle, len(b.throttles)})
		b.throttles = append(b.throttles, call)
	}
	return err
}

// parseThrottle reads the arguments of CL.THROTTLE key max_burst count period [quantity].
func (c *conn) parseThrottle(args []string) (call throttleCall, err error) {
	if len(args) > 5 {
		return call, errors.New("wrong number of arguments for 'cl.throttle' command")
	}
	var numbers [4]int64
	numbers[3] = 1
	for i, arg := range args[1:] {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return call, fmt.Errorf("%s: %.32q: want a whole number", throttleNames[i], arg)
		}
		if n < 0 || n > maxThrottle {
			return call, fmt.Errorf("%s: %d: want 0 to %d", throttleNames[i], n, int64(maxThrottle))
		}
		numbers[i] = n
	}
	if len(args[0]) > sizes.Text {
		return call, fmt.Errorf("key: has %d bytes, more than %d", len(args[0]), sizes.Text)
	}
	l := throttle{numbers[0] + 1, numbers[1], numbers[2]}
	switch {
	case l.count == 0 || l.period == 0:
		return call, errors.New("zero rates are not supported")
	case l.period > int64(window.MaxLength/time.Second):
		return call, fmt.Errorf("period: %d: more than %d seconds", l.period, int64(window.MaxLength/time.Second))
	}
	m, err := c.throttles.get(l, c.began.Unix())
	if err != nil {
		return call, err
	}
	whole := float64(l.burst) * float64(l.period) / float64(l.count) * 1e9
	return throttleCall{limiter: m.Limiter, key: args[0], n: numbers[3], whole: whole}, nil
}

var throttleNames = [...]string{"max_burst", "count", "period", "quantity"}

// replyThrottle replies with five numbers: 1 if the call is denied, otherwise 0; the
// burst; the hits that are left; the wait until the same hits fit, or -1 if they were
// admitted or never fit; the time until the whole burst is left. The last two are in
// seconds, rounded up.
func (c *conn) replyThrottle(call *throttleCall) {
	if call.err != nil {
		c.failed(cmdThrottle, call.err)
		return
	}
	r := &call.result
	denied, retry := int64(1), int64(-1)
	switch {
	case r.Allowed:
		denied = 0
	case r.RetryAfter >= 0:
		retry = wholeSeconds(r.RetryAfter)
	}
	c.out.array(5)
	c.out.integer(denied)
	c.out.integer(r.Quota)
	c.out.integer(r.Remaining)
	c.out.integer(retry)
	c.out.integer(wholeSeconds(r.ResetAfter))
}

// wholeSeconds returns d in seconds as redis-cell does: rounded up, after parts of a
// millisecond were dropped.
func wholeSeconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	return (ms + 999) / 1000
}
