package weir_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// A limiter with several limits counts a hit under all of them or none, and answers as the
// model of a store does that is asked for all at once: with the numbers of the limit that
// decides. So does one on a store that it does not know, or that nobody can reach.
func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	limits := []weir.Limit{weir.Bucket(2, time.Second, 0), weir.Sliding(5, 10*time.Second), weir.Fixed(9, time.Minute)}
	for name, options := range map[string]func(*memstore.Store) []weir.LimiterOption{
		"memory": func(*memstore.Store) []weir.LimiterOption { return nil },
		"observed": func(*memstore.Store) []weir.LimiterOption {
			return []weir.LimiterOption{weir.WithObserver(new(observed))}
		},
		"given": func(s *memstore.Store) []weir.LimiterOption {
			return []weir.LimiterOption{weir.WithStore(&shaky{Store: s}), weir.WithName("m")}
		},
		"in an outage": func(s *memstore.Store) []weir.LimiterOption {
			return []weir.LimiterOption{weir.WithStore(&shaky{Store: s, out: map[string]bool{"m": true}}), weir.WithName("m")}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			m := weir.MustLimiter(limits[0], append(options(s), weir.And(limits[1:]...))...)
			if got := m.Limits(); !slices.Equal(got, limits) || m.Limit() != limits[0] {
				t.Errorf("%s: got limits %v", name, got)
			}
			model := storetest.NewModel()
			ops := make([]store.Op, len(limits))
			for i, l := range limits {
				ops[i] = store.Op{Space: store.NewSpace("", l.Window.ID(), "", 0), Limit: window.MustCompile(l), Key: []byte("k")}
			}
			r := rand.New(rand.NewPCG(7, 7))
			decided := map[int]int{}
			for step := range 2000 {
				time.Sleep(time.Duration(r.IntN(900)) * time.Millisecond)
				n := int64(1 + r.IntN(2))
				verb, ask := store.Take, m.AllowN
				switch r.IntN(8) {
				case 0:
					verb, ask = store.Record, m.Record
				case 1:
					verb, ask = store.Refund, m.Refund
				}
				for i := range ops {
					ops[i].N = n
				}
				model.Set(window.At(time.Now()))
				if err := store.Do(t.Context(), model.Store, verb, ops); err != nil {
					t.Fatal(err)
				}
				got, err := ask(t.Context(), "k", n)
				if err != nil || got.Result != ops[got.Limit].Result {
					t.Fatalf("%s, step %d, %v of %d: got %+v, %v, want %+v", name, step, verb, n, got, err, ops[got.Limit].Result)
				}
				for i := range ops {
					switch own := &ops[i].Result; {
					case got.Allowed && (!own.Allowed || own.Remaining < got.Remaining),
						!own.Allowed && got.RetryAfter != window.Never && (own.RetryAfter == window.Never || own.RetryAfter > got.RetryAfter):
						t.Fatalf("%s, step %d: got %+v, but limit %d has %+v", name, step, got, i, own)
					}
				}
				if verb == store.Take {
					decided[got.Limit]++
				}
			}
			if len(decided) != len(limits) {
				t.Errorf("%s: got decisions by %v, want some by each limit", name, decided)
			}
			if err := m.Forget(t.Context(), "k"); err != nil {
				t.Error(err)
			}
			if got, err := m.Check(t.Context(), "k"); err != nil || got.Used != 0 || got.Limit != 0 || got.Remaining != 2 {
				t.Errorf("%s, after it was forgotten: got %+v, %v, want 2 remaining", name, got, err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An observer gets the numbers of all limits.
func TestObserverOfSeveralLimits(t *testing.T) {
	t.Parallel()
	var o usages
	m := weir.MustLimiter(weir.Fixed(1, time.Minute), weir.And(weir.Fixed(5, time.Hour)), weir.WithName("m"), weir.WithObserver(&o))
	defer m.Close()
	for range 2 {
		_, _ = m.Allow(t.Context(), "k")
	}
	if want := []int64{1, 5, 1, 5}; !slices.Equal(o.quotas, want) {
		t.Errorf("got usages with quotas %v, want %v", o.quotas, want)
	}
}

type usages struct {
	observed
	quotas []int64
}

func (u *usages) Decided(_ context.Context, _ store.Verb, d *weir.Decision, _ time.Duration) {
	for i := range d.Usages {
		u.quotas = append(u.quotas, d.Usages[i].Quota)
	}
}

// When the store cannot answer for one of the limits only, the policy decides for that one.
func TestSeveralLimitsWithoutRoom(t *testing.T) {
	t.Parallel()
	m := weir.MustLimiter(weir.Fixed(1, time.Minute), weir.And(weir.Fixed(5, time.Hour)), weir.WithMaxKeys(1), weir.WithOutage(rule.OutageDeny))
	defer m.Close()
	if r, err := m.Allow(t.Context(), "a"); err != nil || !r.Allowed || r.Degraded {
		t.Errorf("first key: got %+v, %v, want allowed", r, err)
	}
	if r, err := m.Allow(t.Context(), "b"); err != nil || r.Allowed || !r.Degraded || r.RetryAfter <= 0 {
		t.Errorf("one more: got %+v, %v, want denied, degraded", r, err)
	}
}

func TestFaultsOfSeveralLimits(t *testing.T) {
	t.Parallel()
	hourly := weir.Sliding(5, time.Hour)
	for path, further := range map[string]weir.Limit{
		"and[0].quota":         weir.Sliding(window.Unlimited, time.Minute),
		"and[0].window.length": weir.Sliding(5, -time.Minute),
		"and[0].window":        weir.Sliding(6, time.Hour),
		"and[0].measure":       weir.Members(5, time.Minute),
	} {
		_, err := weir.NewLimiter(hourly, weir.And(further))
		var f *fault.Fault
		if !errors.As(err, &f) || f.Path != path {
			t.Errorf("got %v, want a fault of %s", err, path)
		}
	}
	_, err := weir.NewLimiter(weir.Sliding(5, -time.Hour), weir.And(hourly, hourly))
	if got := fault.Of(err); len(got) != 2 {
		t.Errorf("got %v, want two faults", err)
	}
	if _, err := weir.NewCounter(hourly.Window, weir.And(hourly)); err == nil {
		t.Error("a counter with a limit: got no error")
	}
}

// AllowUpTo admits what remains under all limits, whoever decides.
func TestAllowUpTo(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(*shaky) []weir.LimiterOption{
		"memory": func(*shaky) []weir.LimiterOption { return nil },
		"given":  func(s *shaky) []weir.LimiterOption { return []weir.LimiterOption{weir.WithStore(s)} },
		"in an outage": func(s *shaky) []weir.LimiterOption {
			s.set(true, "m")
			return []weir.LimiterOption{weir.WithStore(s)}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &shaky{Store: memstore.New(), out: map[string]bool{}}
			defer s.Close()
			m := weir.MustLimiter(weir.Sliding(5, time.Minute), append(options(s), weir.WithName("m"), weir.And(weir.Sliding(8, time.Hour)))...)
			defer m.Close()
			for i, step := range []struct {
				n, want int64
				by      int // the limit that decides
				retry   time.Duration
				pass    time.Duration // afterwards
			}{
				{n: 4, want: 4, by: 0},
				{n: 4, want: 1, by: 0},
				{n: 4, want: 0, by: 0, retry: time.Minute, pass: time.Minute},
				{n: 4, want: 3, by: 1},
				{n: 4, want: 0, by: 1, retry: 59 * time.Minute, pass: 59 * time.Minute},
				{n: 100, want: 5, by: 0},
			} {
				got, r, err := m.AllowUpTo(t.Context(), "k", step.n)
				if err != nil || got != step.want || r.Allowed != (got > 0) || r.Limit != step.by || r.RetryAfter != step.retry {
					t.Errorf("%s, step %d: got %d, %+v, %v, want %+v", name, i, got, r, err, step)
				}
				time.Sleep(step.pass)
			}
			if r, err := m.AllowN(t.Context(), "new", 6); err != nil || r.Allowed {
				t.Errorf("%s: got %+v, %v: AllowN took less than it was asked for", name, r, err)
			}
			for _, n := range []int64{0, -1} {
				if got, r, err := m.AllowUpTo(t.Context(), "k", n); err == nil || got != 0 || r.Allowed {
					t.Errorf("%s, up to %d: got %d, %+v and no error", name, n, got, r)
				}
			}
		})
	}
	out := &shaky{Store: memstore.New(), out: map[string]bool{"m": true}}
	defer out.Close()
	for policy, want := range map[rule.Outage]int64{rule.OutageAllow: 7, rule.OutageDeny: 0} {
		m := weir.MustLimiter(weir.Sliding(5, time.Minute), weir.WithStore(out), weir.WithName("m"), weir.WithOutage(policy))
		if got, r, err := m.AllowUpTo(t.Context(), "k", 7); got != want || err != nil || !r.Degraded {
			t.Errorf("policy %v: got %d, %+v, %v, want %d", policy, got, r, err, want)
		}
	}
}
