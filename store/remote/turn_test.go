package remote_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// Those of one name have turns one after the other, the first to come first. Those of other names do not wait for them.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns sync.Map
		end, err := remote.Turn(t.Context(), &turns, "a")
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				end, err := remote.Turn(t.Context(), &turns, "a")
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				time.Sleep(time.Second)
				end()
			}()
			synctest.Wait()
		}
		other, err := remote.Turn(t.Context(), &turns, "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := remote.Turn(ctx, &turns, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v of a caller that has left, want %v", err, context.DeadlineExceeded)
		}
		began := time.Now()
		end()
		time.Sleep(10 * time.Second)
		last, err := remote.Turn(t.Context(), &turns, "a")
		if err != nil || len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 || time.Since(began) != 10*time.Second {
			t.Errorf("got turns %v, %v, want 0, 1 and 2", order, err)
		}
		last()
	})
}

// Of callers that come to one turn at the same time, some wait for each other. The others are told that too many do.
func TestFewWaitForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns sync.Map
		end, err := remote.Turn(t.Context(), &turns, "a")
		if err != nil {
			t.Fatal(err)
		}
		var had, busy atomic.Int64
		for range 200 {
			go func() {
				end, err := remote.Turn(t.Context(), &turns, "a")
				switch {
				case err == nil:
					had.Add(1)
					end()
				case errors.Is(err, remote.ErrBusy):
					busy.Add(1)
				default:
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if busy.Load() < 100 || busy.Load() == 200 {
			t.Errorf("got %d of 200 that are told so at once", busy.Load())
		}
		end()
		synctest.Wait()
		if had.Load()+busy.Load() != 200 {
			t.Errorf("got %d that had a turn, and %d that are busy, want 200", had.Load(), busy.Load())
		}
	})
}
