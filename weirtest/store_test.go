package weirtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/weirtest"
	"github.com/weirhq/weir/window"
)

func open(t testing.TB) (*weirtest.Store, storetest.Opened) {
	var now atomic.Int64
	s := weirtest.NewStore(memstore.WithClock(func() window.Instant { return window.Instant(now.Load()) }))
	t.Cleanup(func() { s.Close() })
	return s, storetest.Opened{Store: s, Set: func(i window.Instant) { now.Store(int64(i)) }}
}

// A store of which nothing is asked is a store like any other, and so is one that denies
// keys that no one uses.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Opened {
		_, o := open(t)
		return o
	})
	for seed := range uint64(4) {
		s, o := open(t)
		s.Deny(time.Hour, "no such rule")
		storetest.Compare(t, o, storetest.NewModel(), seed, 1000)
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	testPosts(t)
}

func limiter(t *testing.T, s *weirtest.Store, options ...weir.LimiterOption) *weir.Limiter {
	t.Helper()
	m, err := weir.NewLimiter(weir.Sliding(5, time.Hour), append(options, weir.WithStore(s), weir.WithName("posts"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestDeny(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := weirtest.NewStore()
		m := limiter(t, s)
		s.Deny(time.Minute, "posts", "ann")
		for key, want := range map[string]bool{"ann": false, "bob": true} {
			for name, ask := range map[string]func(context.Context, string) (weir.Result, error){"check": m.Check, "allow": m.Allow} {
				r, err := ask(t.Context(), key)
				if err != nil || r.Allowed != want || (r.RetryAfter == time.Minute) == want || r.Quota != 5 {
					t.Errorf("%s %s: got %+v %v, want allowed %v", name, key, r, err, want)
				}
			}
		}
		time.Sleep(time.Minute)
		if r, err := m.Allow(t.Context(), "ann"); err != nil || !r.Allowed || r.Used != 1 {
			t.Errorf("got %+v %v, want the first hit, after the wait", r, err)
		}
		s.Deny(time.Minute, "posts")
		if r, err := m.Allow(t.Context(), "eve"); err != nil || r.Allowed {
			t.Errorf("got %+v %v, want every key denied", r, err)
		}
		s.Deny(0, "posts")
		if r, err := m.AllowN(t.Context(), "eve", 2); err != nil || !r.Allowed {
			t.Errorf("got %+v %v, want the denial ended", r, err)
		}
		s.AssertTaken(t, 1, "posts", "ann")
		s.AssertTaken(t, 2, "posts", "eve")
		s.AssertTaken(t, 4, "posts")

		s.Deny(time.Minute, "posts", "ann")
		for key, want := range map[string]int64{"ann": 0, "eve": 3} {
			if got, r, err := m.AllowUpTo(t.Context(), key, 7); err != nil || got != want || r.Allowed != (want > 0) {
				t.Errorf("%s: got %d admitted, %+v %v, want %d", key, got, r, err, want)
			}
		}
		s.AssertTaken(t, 7, "posts")
	})
}

// A denial on demand denies the whole take, as a limit does. What counts denials, and shadow
// rules that are not denied, count.
func TestDenyRules(t *testing.T) {
	t.Parallel()
	hour := window.Sliding(time.Hour)
	quota := &rule.Quota{Value: 9}
	set, err := rule.New([]rule.Rule{
		{Name: "user", Per: []string{"user"}, Quota: quota, Window: hour},
		{Name: "pair", Per: []string{"user", "to"}, Quota: quota, Window: hour},
		{Name: "all", Quota: quota, Window: hour, CountDenied: true},
		{Name: "shadow", Quota: quota, Window: hour, Mode: rule.Shadow},
		{Name: "count", Window: hour},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := weirtest.NewStore()
	e, err := weir.NewEngine(set, weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	take := func(want bool, by string) {
		t.Helper()
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes("user", "ann", "to", "bob")})
		if err != nil || d.Allowed != want || d.Rule != by || (d.RetryAfter > 0) == want {
			t.Errorf("got %+v %v, want allowed %v by %q", d, err, want, by)
		}
		used := map[string]int64{}
		for _, u := range d.Usages {
			used[u.Rule] = u.Used
		}
		for _, name := range []string{"user", "pair", "all", "shadow", "count"} {
			if got := s.Taken(name); got != used[name] {
				t.Errorf("%s: got %d taken, want the %d that are used", name, got, used[name])
			}
		}
	}
	take(true, "")
	s.Deny(time.Hour, "pair", "ann", "bob")
	take(false, "pair")
	s.Deny(0, "pair", "ann", "bob")
	s.Deny(time.Hour, "shadow")
	take(true, "")
	s.AssertTaken(t, 2, "user", "ann")
	s.AssertTaken(t, 2, "pair", "ann", "bob")
	s.AssertTaken(t, 3, "all")
	s.AssertTaken(t, 2, "shadow")
	s.AssertTaken(t, 3, "count")
}

func TestFail(t *testing.T) {
	t.Parallel()
	s := weirtest.NewStore()
	m := limiter(t, s, weir.WithOutage(rule.OutageDeny))
	s.Fail(errors.New("no route to host"))
	r, err := m.Allow(t.Context(), "ann")
	if err != nil || r.Allowed || !r.Degraded || r.DegradedReason() != "test" {
		t.Errorf("got %+v %v, want the outage policy", r, err)
	}
	if err := m.Forget(t.Context(), "ann"); err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("got %v, want the outage", err)
	}
	s.Fail(fmt.Errorf("late: %w", &store.OutageError{Reason: "late", Err: context.DeadlineExceeded}))
	if r, err := m.Allow(t.Context(), "ann"); err != nil || r.DegradedReason() != "late" {
		t.Errorf("got %+v %v, want the reason of the error", r, err)
	}
	s.Fail(nil)
	if r, err := m.Allow(t.Context(), "ann"); err != nil || !r.Allowed || r.Used != 1 {
		t.Errorf("got %+v %v, want the first hit", r, err)
	}
	s.AssertTaken(t, 1, "posts", "ann")
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := weirtest.NewStore()
		m := limiter(t, s)
		s.Delay(time.Second)
		begun := time.Now()
		if r, err := m.Allow(t.Context(), "ann"); err != nil || !r.Allowed || time.Since(begun) != time.Second {
			t.Errorf("got %+v %v after %v", r, err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := m.Allow(ctx, "ann"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		s.AssertTaken(t, 1, "posts", "ann")
	})
}

// recorder is a test that keeps what fails it.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, a ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, a...))
}

func TestAssertTaken(t *testing.T) {
	t.Parallel()
	s := weirtest.NewStore()
	if _, err := limiter(t, s).Allow(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	var r recorder
	s.AssertTaken(&r, 1, "posts", "bob")
	s.AssertTaken(&r, 1, "posts", "ann")
	const want = "posts ann: got 0 hits taken, want 1; in all:\n\tposts \"bob\": 1"
	if len(r.errors) != 1 || r.errors[0] != want {
		t.Errorf("got %q, want %q", r.errors, want)
	}
}
