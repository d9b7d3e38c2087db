package leasestore_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/leasestore"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/store/remote"
)

// distant is a store on a server that answers after delay, unless that is longer than timeout.
type distant struct {
	store.Store
	delay time.Duration
}

const timeout = 50 * time.Millisecond

func (s *distant) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return remote.Within(ctx, timeout)
}

func (s *distant) Do(ctx context.Context, calls []store.Call) error {
	within, cancel := s.Within(ctx)
	defer cancel()
	select {
	case <-time.After(s.delay):
		return s.Store.Do(ctx, calls)
	case <-within.Done():
		for i := range calls {
			calls[i].Err = &store.OutageError{Reason: remote.Late, Err: within.Err()}
		}
		return nil
	}
}

// A decision that gives back a lease first takes no longer than its time-out, if the store does not answer.
func TestRecallInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &distant{Store: memstore.New()}
		s := leasestore.New(shared, func() int { return 2 })
		defer func() { shared.delay = 0; _ = s.Close() }()
		hot(t, s)
		shared.delay = time.Minute
		within, cancel := hook.Of(s).Timed.Within(t.Context())
		defer cancel()
		began := time.Now()
		calls := []store.Call{{Verb: store.Refund, Ops: []store.Op{opOn("key", 1)}}}
		err := s.Do(within, calls)
		if took := time.Since(began); took > timeout {
			t.Errorf("got an answer after %v, want %v at most: %v, %v", took, timeout, err, calls[0].Err)
		}
	})
}

// Close gives back the leases of many keys at the same time.
func TestCloseOfManyKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &distant{Store: memstore.New()}
		s := leasestore.New(shared, func() int { return 2 })
		for i := range 3000 {
			for range 10 {
				do(t, s, store.Take, opOn(strconv.Itoa(i), 1))
			}
		}
		synctest.Wait()
		n := s.(hook.Leaser).Leases().Keys
		shared.delay = 5 * time.Millisecond
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); n < 2000 || took > 100*time.Millisecond {
			t.Errorf("got %v for %d keys, want at most 100ms for 2,000 or more", took, n)
		}
	})
}
