package weirtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Store is a [store.Store] for tests. Make one with [NewStore], and give it to an engine,
// a limiter or a counter with weir.WithStore. Unless a test asks for something else, it
// decides as a store in memory does. It is safe for concurrent use.
//
// Its methods find a counter by the name of the rule or the limiter, and by its key: that
// of a limiter, or the values of the attributes in a rule's `per`, in their order. Without a
// key they mean all keys.
type Store struct {
	memory *memstore.Store

	mu     sync.Mutex
	until  map[counter]time.Time // guarded by mu; denied until then
	outage error                 // guarded by mu; nil: calls are decided
	delay  time.Duration         // guarded by mu
	taken  map[counter]int64     // guarded by mu; hits
}

var _ store.Store = (*Store)(nil)

// counter is a key, as the store gets it, or all keys, of the rule or the limiter called name.
type counter struct {
	name, key string
	all       bool
}

// NewStore returns an empty store. The options are those of the store in memory that it
// asks.
func NewStore(options ...memstore.Option) *Store {
	return &Store{memory: memstore.New(options...), until: map[counter]time.Time{}, taken: map[counter]int64{}}
}

// Deny makes the store deny takes and checks of a counter from now on until wait has
// passed; the denials' RetryAfter is the rest of wait. What was counted stays, and a denial on demand is not
// a strike that begins a ban. A wait of 0 ends an earlier Deny with the same name and key.
func (s *Store) Deny(wait time.Duration, name string, key ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counters(name, key) {
		if s.until[c] = time.Now().Add(wait); wait <= 0 {
			delete(s.until, c)
		}
	}
}

// Fail makes every call from now on fail as if the store were unavailable, because of err: nothing is
// counted, and the outage policies of the rules and limiters decide. An err that is a
// [*store.OutageError] is what callers get; any other one is its cause. With nil the
// store answers again.
func (s *Store) Fail(err error) {
	if _, ok := errors.AsType[*store.OutageError](err); err != nil && !ok {
		err = &store.OutageError{Reason: "test", Err: err, Uncounted: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = err
}

// Delay makes every call from now on wait for d before it is decided, or until its context is done:
// then it returns the context's error and nothing is counted.
func (s *Store) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Taken returns the hits that takes have counted in a counter so far, or in all keys of a rule or
// a limiter. Hits that are older than the window, or were given back later, are included. It
// counts each use of a member.
func (s *Store) Taken(name string, key ...string) (hits int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(key) > 0 {
		for _, c := range counters(name, key) {
			hits += s.taken[c]
		}
		return hits
	}
	for c, n := range s.taken {
		if c.name == name {
			hits += n
		}
	}
	return hits
}

// AssertTaken fails the test, with a list of what was taken, unless [Store.Taken] of the
// counter is want.
func (s *Store) AssertTaken(t testing.TB, want int64, name string, key ...string) {
	t.Helper()
	if got := s.Taken(name, key...); got != want {
		t.Errorf("%s: got %d hits taken, want %d; in all:%s", strings.Join(append([]string{name}, key...), " "), got, want, s.list())
	}
}

// list returns what was taken, one line for each counter.
func (s *Store) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, len(s.taken))
	for c, n := range s.taken {
		lines = append(lines, fmt.Sprintf("\n\t%s %q: %d", c.name, c.key, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// counters returns the counters that a test may mean: the key of a limiter is one text, and that of a
// rule is made of several.
func counters(name string, key []string) []counter {
	switch len(key) {
	case 0:
		return []counter{{name: name, all: true}}
	case 1:
		return []counter{{name: name, key: key[0]}, {name: name, key: string(ruleset.AppendKey(nil, key[0]))}}
	}
	return []counter{{name: name, key: string(ruleset.AppendKey(nil, key...))}}
}

// Do implements [store.Store].
func (s *Store) Do(ctx context.Context, calls []store.Call) error {
	if err := s.ready(ctx); err != nil {
		if _, ok := errors.AsType[*store.OutageError](err); !ok {
			return err
		}
		for i := range calls {
			calls[i].Err = err
		}
		return nil
	}
	err := error(nil)
	if denials := s.denials(); len(denials) > 0 {
		err = s.deny(ctx, calls, denials)
	} else {
		err = s.memory.Do(ctx, calls)
	}
	if err == nil {
		s.note(calls)
	}
	return err
}

// ready waits, and returns the error of a call, as the test asked for.
func (s *Store) ready(ctx context.Context) error {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage
}

// denials returns how long which counters are denied.
func (s *Store) denials() map[counter]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.until, func(_ counter, until time.Time) bool { return !now.Before(until) })
	left := make(map[counter]time.Duration, len(s.until))
	for c, until := range s.until {
		left[c] = until.Sub(now)
	}
	return left
}

// deny has calls decided with denials. An op more, which is always denied, denies the takes, so that memory
// counts as it does when a limit denies.
func (s *Store) deny(ctx context.Context, calls []store.Call, denials map[counter]time.Duration) error {
	inner := slices.Clone(calls)
	for i := range inner {
		c := &inner[i]
		if c.Verb != store.Take {
			continue
		}
		c.Ops = slices.Clone(c.Ops)
		denied := false
		for n := range c.Ops {
			op := &c.Ops[n]
			if op.N <= 0 || wait(denials, op) == 0 {
				continue
			}
			switch op.Role {
			case store.Enforce:
				denied = true
			case store.Shadow:
				op.Role = store.Look
			}
		}
		if denied {
			c.Ops = append(c.Ops, store.Op{Space: denying, Limit: nothing, N: 1})
		}
	}
	if err := s.memory.Do(ctx, inner); err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		c.Err = inner[i].Err
		for n := range c.Ops {
			op := &c.Ops[n]
			op.N, op.Result = inner[i].Ops[n].N, inner[i].Ops[n].Result // N may be lower, by UpTo
			if left := wait(denials, op); c.Err == nil && left > 0 && op.N > 0 && c.Verb <= store.Take && op.Role != store.Always {
				op.Result.Allowed, op.Result.Remaining = false, 0
				op.Result.RetryAfter = max(op.Result.RetryAfter, left)
				op.Result.ResetAfter = max(op.Result.ResetAfter, left)
			}
		}
	}
	return nil
}

// denying and nothing are the counter and the limit that deny the takes of [Store.Deny].
var (
	denying = store.NewSpace("", "weirtest", "weirtest", 1)
	nothing = window.MustCompile(window.Limit{Window: window.Fixed(time.Hour)})
)

// wait returns how long op is denied; 0: it is not.
func wait(denials map[counter]time.Duration, op *store.Op) time.Duration {
	name := op.Space.Name()
	return max(denials[counter{name: name, all: true}], denials[counter{name: name, key: string(op.Key)}])
}

// note notes what the takes of calls have counted.
func (s *Store) note(calls []store.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range calls {
		c := &calls[i]
		if c.Verb != store.Take || c.Err != nil || c.Once != nil && c.Once.Result.Before > 0 {
			continue
		}
		denied := slices.ContainsFunc(c.Ops, func(op store.Op) bool { return op.Role == store.Enforce && !op.Result.Allowed })
		for n := range c.Ops {
			op := &c.Ops[n]
			counted := op.CountDenied || op.Role == store.Always ||
				op.Role == store.Enforce && !denied || op.Role == store.Shadow && op.Result.Allowed
			if counted && op.N > 0 {
				s.taken[counter{name: op.Space.Name(), key: string(op.Key)}] += op.N
			}
		}
	}
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	if err := s.ready(ctx); err != nil {
		return window.Reading{}, err
	}
	return s.memory.Read(ctx, op)
}

// Forget implements [store.Store].
func (s *Store) Forget(ctx context.Context, op *store.Op) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.memory.Forget(ctx, op)
}

// Close implements [store.Store].
func (s *Store) Close() error { return s.memory.Close() }
