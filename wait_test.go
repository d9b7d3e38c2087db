package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := weir.MustLimiter(weir.Bucket(1, time.Second, 1))
		defer m.Close()
		began := time.Now()
		for range 5 {
			if err := m.Wait(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(began); got != 4*time.Second {
			t.Errorf("five at one a second took %s, want 4s", got)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := m.Wait(soon, "k"); !errors.Is(err, weir.ErrWouldWait) {
			t.Errorf("a deadline before the hit fits: got %v, want %v", err, weir.ErrWouldWait)
		}
		stopped, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, stop)
		if err := m.Wait(stopped, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled while waiting: got %v, want %v", err, context.Canceled)
		}
		never := weir.MustLimiter(weir.Sliding(0, time.Second))
		defer never.Close()
		if err := never.Wait(t.Context(), "k"); !errors.Is(err, weir.ErrWouldWait) {
			t.Errorf("quota 0: got %v, want %v", err, weir.ErrWouldWait)
		}
	})
}

// queued starts calls of WaitN one after the other, each when the one before sleeps, and notes when
// each returned. It is for a synctest bubble.
type queued struct {
	m     *weir.Limiter
	all   sync.WaitGroup
	began time.Time

	mu    sync.Mutex
	order []string // guarded by mu
}

func (q *queued) start(ctx context.Context, name string, n int64) {
	if q.began.IsZero() {
		q.began = time.Now()
	}
	q.all.Go(func() {
		err := q.m.WaitN(ctx, "k", n)
		q.mu.Lock()
		defer q.mu.Unlock()
		switch after := time.Since(q.began); err {
		case nil:
			q.order = append(q.order, fmt.Sprintf("%s %v", name, after))
		default:
			q.order = append(q.order, fmt.Sprintf("%s %v: %v", name, after, err))
		}
	})
	synctest.Wait()
}

func (q *queued) wants(t *testing.T, want ...string) {
	t.Helper()
	q.all.Wait()
	if !slices.Equal(q.order, want) {
		t.Errorf("got\n%q, want\n%q", q.order, want)
	}
}

// Callers are admitted in the order in which they came, and nobody overtakes one who waits for
// more hits. One who leaves gives its place to the next.
func TestWaitInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued{m: weir.MustLimiter(weir.Bucket(1, time.Second, 3))}
		defer q.m.Close()
		leaves, leave := context.WithCancel(t.Context())
		first, firstLeaves := context.WithCancel(t.Context())
		q.start(t.Context(), "at once", 3)
		q.start(first, "first", 2)
		q.start(t.Context(), "second", 1)
		q.start(t.Context(), "many", 3)
		q.start(leaves, "leaves", 1)
		q.start(t.Context(), "last", 1)
		for range 3 { // other keys do not wait
			if err := q.m.Wait(t.Context(), "other"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(500 * time.Millisecond)
		firstLeaves()
		time.Sleep(time.Second)
		leave()
		q.wants(t,
			"at once 0s",
			"first 500ms: context canceled",
			"second 1s",
			"leaves 1.5s: context canceled",
			"many 4s",
			"last 5s",
		)
	})
}

// A wait that cannot end in time fails at once, and so does one too many.
func TestWaitFailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued{m: weir.MustLimiter(weir.Bucket(1, time.Second, 1), weir.WithMaxWaiting(4))}
		defer q.m.Close()
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		q.start(t.Context(), "a", 1)
		q.start(t.Context(), "b", 1)
		q.start(t.Context(), "c", 1)
		q.start(within(3*time.Second-time.Millisecond), "late", 1)
		q.start(within(3*time.Second+1), "in time", 1)
		q.start(t.Context(), "more than ever fit", 2)
		q.start(t.Context(), "d", 1)
		q.start(t.Context(), "too many", 1)
		q.start(t.Context(), "none", 0)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		q.start(gone, "gone", 1)
		q.wants(t,
			"a 0s",
			"late 0s: "+weir.ErrWouldWait.Error(),
			"more than ever fit 0s: "+weir.ErrWouldWait.Error(),
			"too many 0s: "+weir.ErrTooManyWaiting.Error(),
			"none 0s: weir: hits: 0: want at least 1; Check looks without counting",
			"gone 0s: context canceled",
			"b 1s", "c 2s", "in time 3s", "d 4s",
		)
	})
	if _, err := weir.NewLimiter(weir.Sliding(1, time.Hour), weir.WithMaxWaiting(0)); err == nil {
		t.Error("nobody may wait: got no error")
	}
}

// While as many callers wait for a key as may, other keys are admitted if their hits fit at once.
func TestWaitOfOtherKeysWhenFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued{m: weir.MustLimiter(weir.Bucket(1, time.Second, 1), weir.WithMaxWaiting(1))}
		defer q.m.Close()
		q.start(t.Context(), "at once", 1)
		q.start(t.Context(), "waits", 1)
		for _, want := range []error{nil, weir.ErrTooManyWaiting} {
			if err := q.m.Wait(t.Context(), "other"); !errors.Is(err, want) {
				t.Errorf("another key: got %v, want %v", err, want)
			}
		}
		q.wants(t, "at once 0s", "waits 1s")
	})
}

// No wait that would end before its deadline is refused: the lower bound of a wait is one, in windows
// of all kinds. Where it is exact, a wait that ends later is refused at once.
func TestWaitsThatEndInTime(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string][]weir.Limit{
		"sliding":           {weir.Sliding(5, time.Second)},
		"sliding in groups": {weir.Sliding(300, time.Second)},
		"cells":             {{Quota: 5, Window: window.Cells(time.Second, 50)}},
		"fixed":             {weir.Fixed(5, time.Second)},
		"aligned":           {{Quota: 5, Window: window.Aligned(time.Second)}},
		"calendar":          {weir.Calendar(5, window.Minute, nil)},
		"bucket":            {weir.Bucket(7, time.Second, 3)},
		"spaced":            {weir.Bucket(3, time.Second, 1)},
		"ever":              {{Quota: 25, Window: window.Ever()}},
		"after a count":     {{Quota: 5, Window: window.Sliding(time.Second), After: window.After{Count: 4, Window: window.Fixed(3 * time.Second)}}},
		"two":               {weir.Bucket(7, time.Second, 3), weir.Sliding(12, 3*time.Second)},
	} {
		exact := name == "sliding" || name == "fixed" || name == "bucket" || name == "spaced"
		for seed := range uint64(200) {
			synctest.Test(t, func(t *testing.T) {
				// run makes a queue behind hits of the past, and returns how the last caller fares whose
				// context has that much time; 0: it has no end.
				run := func(within time.Duration) (took time.Duration, err error) {
					r := rand.New(rand.NewPCG(seed, 3))
					m := weir.MustLimiter(limits[0], weir.And(limits[1:]...))
					defer m.Close()
					most := limits[0].Quota
					if limits[0].Window.Kind == window.KindBucket {
						most = max(limits[0].Window.Burst, 1)
					}
					time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
					for range r.IntN(6) {
						_, _ = m.AllowN(t.Context(), "k", 1+r.Int64N(most))
						time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
					}
					ctx, cancel := context.WithCancel(t.Context())
					var all sync.WaitGroup
					for range 1 + r.IntN(8) {
						n := int64(1)
						if !exact {
							n += r.Int64N(most)
						}
						all.Go(func() { _ = m.WaitN(ctx, "k", n) })
						synctest.Wait()
					}
					own, end := ctx, func() {}
					if within > 0 {
						own, end = context.WithTimeout(ctx, within)
					}
					began := time.Now()
					err = m.Wait(own, "k")
					took = time.Since(began)
					end()
					cancel()
					all.Wait()
					return took, err
				}
				wait, err := run(0)
				if err != nil { // ever
					if !errors.Is(err, weir.ErrWouldWait) {
						t.Errorf("%s, seed %d: got %v", name, seed, err)
					}
					return
				}
				if took, err := run(wait + 1); err != nil || took != wait {
					t.Errorf("%s, seed %d: got %v after %v, want the end of the wait after %v", name, seed, err, took, wait)
				}
				// Each denial is rounded up to a microsecond.
				if wait < time.Millisecond {
					return
				}
				if took, err := run(wait - 20*time.Microsecond); err == nil || exact && (took != 0 || !errors.Is(err, weir.ErrWouldWait)) {
					t.Errorf("%s, seed %d: got %v after %v, want it refused: the wait is %v", name, seed, err, took, wait)
				}
			})
		}
	}
}

// Callers who come and go at the same time leave an empty queue, and no more of them are admitted
// than fit.
func TestWaitUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := weir.MustLimiter(weir.Bucket(1000, time.Second, 1), weir.WithMaxWaiting(10_000))
		defer m.Close()
		var all sync.WaitGroup
		var mu sync.Mutex
		admitted := 0
		for i := range 2000 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%500)*time.Millisecond)
				defer cancel()
				if i%7 == 0 {
					time.AfterFunc(time.Duration(i%50)*time.Millisecond, cancel)
				}
				if m.Wait(ctx, fmt.Sprint(i%3)) == nil {
					mu.Lock()
					defer mu.Unlock()
					admitted++
				}
			})
		}
		began := time.Now()
		all.Wait()
		if most := 3 * (1 + int(time.Since(began)/time.Millisecond)); admitted > most || admitted < 600 {
			t.Errorf("got %d admitted in %v, want at most %d", admitted, time.Since(began), most)
		}
		time.Sleep(time.Second)
		if err := m.Wait(t.Context(), "0"); err != nil {
			t.Errorf("when nobody waits any more: got %v", err)
		}
	})
}

// In an outage the policy decides for a wait, as for Allow.
func TestWaitInAnOutage(t *testing.T) {
	t.Parallel()
	for policy, want := range map[rule.Outage]time.Duration{rule.OutageAllow: 0, rule.OutageLocal: 4 * time.Second, rule.OutageDeny: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &shaky{Store: memstore.New(), out: map[string]bool{"m": true}}
			defer s.Close()
			q := queued{m: weir.MustLimiter(weir.Fixed(1, 4*time.Second), weir.WithStore(s), weir.WithName("m"), weir.WithOutage(policy))}
			defer q.m.Close()
			if policy == rule.OutageDeny {
				time.AfterFunc(2500*time.Millisecond, func() { s.set(false, "m") })
			}
			within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if policy == rule.OutageLocal {
				q.start(t.Context(), "before", 1)
			}
			q.start(within, "one", 1)
			q.all.Wait()
			if got := time.Since(q.began); got != want {
				t.Errorf("policy %v: got it after %v, want %v: %q", policy, got, want, q.order)
			}
		})
	}
}
