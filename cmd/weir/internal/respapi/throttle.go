package respapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/internal/stated"
	"github.com/weirhq/weir/window"
)

// throttle is the limit of a command that states it. Of CL.THROTTLE and GCRA: count hits in a
// period on average, and burst at once. Of INCREX: count hits in a period that begins with the
// first one; burst is 0.
type throttle struct {
	burst, count int64
	counterOf
}

// counterOf says which limits share the counter of a key.
type counterOf struct {
	period time.Duration
	fixed  bool // of INCREX
}

// limit returns the limit of l.
func (l *throttle) limit() weir.Limit {
	if l.fixed {
		return weir.Fixed(l.count, l.period)
	}
	return weir.Bucket(l.count, l.period, l.burst)
}

// drains returns after how many nanoseconds without a hit the counters of l are empty.
func (l *throttle) drains() float64 {
	if l.fixed {
		return float64(l.period)
	}
	return float64(l.burst) * float64(l.period) / float64(l.count)
}

// throttleCall is one command that states its limit, and its answer.
type throttleCall struct {
	limiter *weir.Limiter
	key     string
	n       int64   // 0: a check
	whole   float64 // of a bucket: nanoseconds in which the whole burst drains
	upTo    bool    // admits as many of n as fit

	admitted int64
	result   weir.Result
	err      error
}

// throttles are the limiters of commands that state their limits, in one namespace. All count
// in one store. It is safe for concurrent use.
type throttles struct {
	open func(weir.Limit) (*weir.Limiter, error)

	mu       sync.RWMutex
	limiters map[throttle]*throttleLimiter // nil: closed; guarded by mu
	periods  map[counterOf]int             // limiters by their counters; guarded by mu
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

// maxThrottle is the largest number in a command that states its limit.
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
		t = &throttles{open: open, limiters: map[throttle]*throttleLimiter{}, periods: map[counterOf]int{}}
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
	isNew := t.periods[l.counterOf] == 0
	if len(t.limiters) >= maxThrottles || isNew && len(t.periods) >= maxPeriods {
		t.sweep(now)
	}
	switch {
	case isNew && len(t.periods) >= maxPeriods:
		return nil, fmt.Errorf("more than %d different periods are in use", maxPeriods)
	case len(t.limiters) >= maxThrottles:
		return nil, fmt.Errorf("more than %d different limits are in use", maxThrottles)
	}
	limiter, err := t.open(l.limit())
	if err != nil {
		return nil, err
	}
	m = &throttleLimiter{Limiter: limiter, idle: int64(l.drains()/1e9) + 2}
	m.used.Store(now)
	t.limiters[l] = m
	t.periods[l.counterOf]++
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
		if t.periods[l.counterOf]--; t.periods[l.counterOf] == 0 {
			delete(t.periods, l.counterOf)
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

// maxTogether is the maximum number of keys of a batch that are decided at the same time, each in its own call.
const maxTogether = 64

// runThrottles decides calls. Over a network, calls with different keys are decided at the same time.
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
	places := make(chan struct{}, maxTogether)
	for _, list := range byKey {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			for _, i := range list {
				calls[i].run(ctx)
			}
		})
	}
	group.Wait()
}

func (c *throttleCall) run(ctx context.Context) {
	switch {
	case c.upTo && c.n > 0:
		c.admitted, c.result, c.err = c.limiter.AllowUpTo(ctx, c.key, c.n)
		return
	case c.n > 0:
		if c.result, c.err = c.limiter.AllowN(ctx, c.key, c.n); c.result.Allowed {
			c.admitted = c.n
		}
		return
	}
	if c.result, c.err = c.limiter.Check(ctx, c.key); c.whole > 0 {
		// Nothing fits if an earlier, higher limit has admitted more than the burst.
		over := time.Duration(float64(c.result.ResetAfter) - c.whole)
		c.result.Allowed, c.result.RetryAfter = over < time.Microsecond, max(over, 0)
	}
}

// throttle adds a command that states its limit to the batch.
func (c *conn) throttle(command int, args []string) error {
	parse := parseThrottle
	switch command {
	case cmdGCRA:
		parse = parseGCRA
	case cmdIncrex:
		parse = parseIncrex
	}
	l, call, err := parse(args[1:])
	switch {
	case err != nil:
		return err
	case len(args[0]) > sizes.Text:
		return fmt.Errorf("key: has %d bytes, more than %d", len(args[0]), sizes.Text)
	case l.period == 0 || l.count == 0 && !l.fixed:
		return errors.New("zero rates are not supported")
	case l.period > window.MaxLength:
		return fmt.Errorf("period: more than %d seconds", int64(window.MaxLength/time.Second))
	case l.drains() > float64(stated.Most):
		return errors.New("a key would be in use for more than 366 days")
	}
	m, err := c.throttles.get(l, c.began.Unix())
	if err != nil {
		return err
	}
	call.limiter, call.key = m.Limiter, args[0]
	if !l.fixed {
		call.whole = l.drains()
	}
	b := &c.batch
	b.pending = append(b.pending, pending{command, len(b.throttles)})
	b.throttles = append(b.throttles, call)
	return nil
}

// parseThrottle reads max_burst count period [quantity], behind the key of a CL.THROTTLE.
func parseThrottle(args []string) (l throttle, call throttleCall, err error) {
	if len(args) > 4 {
		return l, call, errors.New("wrong number of arguments for 'cl.throttle' command")
	}
	var numbers [4]int64
	numbers[3] = 1
	for i, arg := range args {
		if numbers[i], err = whole([...]string{"max_burst", "count", "period", "quantity"}[i], arg); err != nil {
			return l, call, err
		}
	}
	l = throttle{numbers[0] + 1, numbers[1], counterOf{period: seconds(float64(numbers[2]))}}
	return l, throttleCall{n: numbers[3]}, nil
}

// parseGCRA reads max_burst tokens_per_period period [TOKENS count], behind the key of a
// GCRA. The period is in seconds, with a fraction.
func parseGCRA(args []string) (l throttle, call throttleCall, err error) {
	call.n = 1
	if len(args) == 5 && strings.EqualFold(args[3], "TOKENS") {
		if call.n, err = whole("TOKENS", args[4]); err != nil {
			return l, call, err
		}
	} else if len(args) != 3 {
		return l, call, errors.New("syntax error: want GCRA key max_burst tokens_per_period period [TOKENS count]")
	}
	burst, err := whole("max_burst", args[0])
	if err != nil {
		return l, call, err
	}
	count, err := whole("tokens_per_period", args[1])
	if err != nil {
		return l, call, err
	}
	period, err := strconv.ParseFloat(args[2], 64)
	if err != nil || !(period >= 1 && period <= maxThrottle) {
		return l, call, fmt.Errorf("period: %.32q: want seconds, at least 1", args[2])
	}
	return throttle{burst + 1, count, counterOf{period: seconds(period)}}, call, nil
}

// parseIncrex reads [BYINT n] [UBOUND n] [SATURATE] EX seconds | PX milliseconds ENX, behind the
// key of an INCREX, in any order.
func parseIncrex(args []string) (l throttle, call throttleCall, err error) {
	l, call.n = throttle{0, window.MaxHits, counterOf{fixed: true}}, 1
	kept := false
	for len(args) > 0 {
		option := strings.ToUpper(args[0])
		args = args[1:]
		switch option {
		case "SATURATE":
			call.upTo = true
			continue
		case "ENX":
			kept = true
			continue
		case "BYINT", "UBOUND", "EX", "PX":
		case "BYFLOAT", "LBOUND", "EXAT", "PXAT", "PERSIST":
			return l, call, fmt.Errorf("%s is not supported: weir counts hits up to a bound in a period", option)
		default:
			return l, call, errors.New("syntax error")
		}
		if len(args) == 0 {
			return l, call, errors.New("syntax error")
		}
		n, err := whole(option, args[0])
		args = args[1:]
		switch {
		case err != nil:
			return l, call, err
		case option == "BYINT":
			call.n = n
		case option == "UBOUND":
			l.count = n
		case option == "EX":
			l.period = seconds(float64(n))
		case option == "PX":
			l.period = seconds(float64(n) / 1e3)
		}
	}
	if l.period == 0 || !kept {
		return l, call, errors.New("want EX seconds or PX milliseconds, and ENX: a period begins with its first hit, and a later one does not move its end")
	}
	return l, call, nil
}

// whole reads a whole number.
func whole(name, arg string) (int64, error) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %.32q: want a whole number", name, arg)
	}
	if n < 0 || n > maxThrottle {
		return 0, fmt.Errorf("%s: %d: want 0 to %d", name, n, int64(maxThrottle))
	}
	return n, nil
}

// seconds returns a duration, or the longest if n seconds are more.
func seconds(n float64) time.Duration {
	return time.Duration(min(n*1e9, math.MaxInt64/2))
}

// replyThrottle replies to a command that stated its limit.
func (c *conn) replyThrottle(command int, call *throttleCall) {
	switch {
	case call.err != nil:
		c.failed(command, call.err)
	case command == cmdIncrex: // the hits in the period, and those that were counted
		c.out.array(2)
		c.out.integer(call.result.Used)
		c.out.integer(call.admitted)
	default:
		c.replyBucket(&call.result)
	}
}

// replyBucket replies with five numbers: 1 if the call is denied, otherwise 0; the
// burst; the hits that are left; the wait until the same hits fit, or -1 if they were
// admitted or never fit; the time until the whole burst is left. The last two are in
// seconds, rounded up.
func (c *conn) replyBucket(r *weir.Result) {
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
