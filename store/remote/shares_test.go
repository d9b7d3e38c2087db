package remote_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// begin makes calls begin that have a second in all, in goroutines of their own. It returns the number of those that
// are in flight, and of those that are refused.
func begin(t *testing.T, s *remote.Server, namespace string, callers, calls, most int) (begun, busy *atomic.Int64) {
	t.Helper()
	begun, busy = new(atomic.Int64), new(atomic.Int64)
	for range callers {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			switch err := s.Begin(ctx, namespace, calls, most); {
			case err == nil:
				begun.Add(1)
			case errors.Is(err, remote.ErrBusy):
				busy.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	synctest.Wait()
	return begun, busy
}

// A flood of one namespace takes no more than three quarters, so the calls of another one go at once.
func TestFloodLeavesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(new(bool), nil)
		flood, floodBusy := begin(t, s, "flood", 5000, 1, 1024)
		others, busy := begin(t, s, "other", 50, 1, 1024)
		slice, _ := begin(t, s, "third", 1, 128, 1024)
		if flood.Load() != 768 || others.Load() != 50 || slice.Load() != 1 || s.Node().InFlight != 768+50+128 {
			t.Errorf("got %d, %d and %d in flight of %d, want 768 of the flood, and all of the others", flood.Load(), others.Load(), slice.Load(), s.Node().InFlight)
		}

		// What ends goes to those who have fewer than their part.
		more, _ := begin(t, s, "other", 250, 1, 1024)
		for range 400 {
			s.End("flood", 1)
		}
		synctest.Wait()
		if more.Load() != 250 || flood.Load() > 768+100 {
			t.Errorf("got %d of the second namespace, and %d of the flood", more.Load(), flood.Load())
		}

		// What has waited for half of its time is refused.
		time.Sleep(500*time.Millisecond - 1)
		if floodBusy.Load() != 0 {
			t.Errorf("got %d calls refused too early", floodBusy.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if floodBusy.Load()+flood.Load() != 5000 || busy.Load() != 0 {
			t.Errorf("got %d calls of the flood refused and %d in flight, want 5000; and %d of another namespace, want none", floodBusy.Load(), flood.Load(), busy.Load())
		}
	})
}

// However few calls may be in flight, and however many calls a caller has, all go on in the end.
func TestAllGoOn(t *testing.T) {
	t.Parallel()
	for most := range 6 {
		synctest.Test(t, func(t *testing.T) {
			s := server(new(bool), nil)
			var done, at, highest atomic.Int64
			for i := range 30 {
				go func() {
					namespace, calls := fmt.Sprint(i%3), 1+i%7
					if err := s.Begin(context.Background(), namespace, calls, most); err != nil {
						t.Error(err)
						return
					}
					if n := at.Add(int64(calls)); n > highest.Load() {
						highest.Store(n)
					}
					time.Sleep(time.Millisecond)
					at.Add(-int64(calls))
					s.End(namespace, calls)
					done.Add(1)
				}()
			}
			time.Sleep(time.Second)
			if done.Load() != 30 || s.Node().InFlight != 0 || highest.Load() > 7 {
				t.Errorf("most %d: got %d done, %d in flight, at most %d", most, done.Load(), s.Node().InFlight, highest.Load())
			}
		})
	}
}

// Of many namespaces that fill all places with large batches, all have turns, and so has one that hardly calls.
func TestTurnsOfManyNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(new(bool), nil)
		const heavy, seconds = 10, 5
		var done [heavy + 1]atomic.Int64
		ended := time.Now().Add(seconds * time.Second)
		call := func(n, calls int, pause time.Duration) {
			for time.Now().Before(ended) {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				if err := s.Begin(ctx, fmt.Sprint(n), calls, 1024); err == nil {
					time.Sleep(8 * time.Millisecond)
					s.End(fmt.Sprint(n), calls)
					done[n].Add(1)
				} else if n == heavy {
					t.Errorf("got %v for a namespace that hardly calls", err)
				}
				cancel()
				time.Sleep(pause)
			}
		}
		for n := range heavy {
			for range 4 {
				go call(n, 128, time.Nanosecond)
			}
		}
		go call(heavy, 1, 5*time.Millisecond)
		time.Sleep((seconds + 1) * time.Second)
		for n := range heavy {
			if got, want := done[n].Load(), int64(seconds*1000/8*8/heavy); got < want*8/10 {
				t.Errorf("namespace %d: got %d batches, want about %d", n, got, want)
			}
		}
		if got := done[heavy].Load(); got < seconds*1000/30 {
			t.Errorf("got %d calls of a namespace that hardly calls", got)
		}
	})
}

// Calls of one namespace go on in their order.
func TestInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(new(bool), nil)
		var order []int
		_ = s.Begin(t.Context(), "a", 1, 1)
		for i := range 5 {
			go func() {
				if s.Begin(context.Background(), "a", 1, 1) == nil {
					order = append(order, i)
				}
			}()
			synctest.Wait()
		}
		for range 6 {
			s.End("a", 1)
			synctest.Wait()
		}
		if fmt.Sprint(order) != "[0 1 2 3 4]" || s.Node().InFlight != 0 {
			t.Errorf("got order %v", order)
		}
	})
}

// Calls that have waited do not go to a server that has stopped answering meanwhile.
func TestWaitEndsWithBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(new(bool), nil)
		_ = s.Begin(t.Context(), "a", 1, 1)
		result := make(chan error, 1)
		go func() { result <- s.Begin(context.Background(), "a", 1, 1) }()
		synctest.Wait()
		s.Breaker.Trip()
		s.End("a", 1)
		if err := <-result; !errors.Is(err, remote.ErrUnavailable) || s.Node().InFlight != 0 {
			t.Errorf("got %v, and %d in flight", err, s.Node().InFlight)
		}
	})
}

func BenchmarkBegin(b *testing.B) {
	s := server(new(bool), nil)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_ = s.Begin(context.Background(), "shop", 1, 1024)
			s.End("shop", 1)
		}
	})
}
