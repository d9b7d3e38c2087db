package pgstore_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// TestLostAnswersCountOnce has connections terminated in the middle of calls. A caller calls again, at another
// instance, until it has an answer.
func TestLostAnswersCountOnce(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	instances := make([]store.Store, 2)
	for i := range instances {
		s := openURL(t, n.URL("timeout=5s", "prefix=once"))
		instances[i] = s
	}
	limit := window.MustCompile(window.Limit{Quota: 1 << 30, Window: window.Sliding(time.Hour)})
	kept := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(24 * time.Hour)})
	op := store.Op{Space: store.NewSpace("", "once", "once", 0), Limit: limit, Key: []byte("k"), N: 1}
	const callers, each = 8, 200
	var all sync.WaitGroup
	var replays, failures atomic.Int64
	ended := make(chan struct{})
	var breaker sync.WaitGroup
	breaker.Go(func() {
		for range 200 {
			select {
			case <-ended:
				return
			default:
				n.Must("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir'")
			}
		}
	})
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				for attempt := 0; ; attempt++ {
					calls := []store.Call{{Verb: store.Take, Ops: []store.Op{op}, Once: &store.Op{
						Space: store.NewSpace("", "records", "records", 0), Limit: kept, Key: fmt.Append(nil, caller, "-", i),
						Member: make([]byte, 16), N: (10 * time.Minute).Microseconds(),
					}}}
					if err := errors.Join(instances[attempt%2].Do(t.Context(), calls), calls[0].Err); err != nil {
						failures.Add(1)
						pgtest.Eventually(t, "the store is connected", func() bool {
							return store.Do(t.Context(), instances[(attempt+1)%2], store.Check, []store.Op{op}) == nil
						})
						continue
					}
					replays.Add(calls[0].Once.Result.Before)
					break
				}
			}
		})
	}
	all.Wait()
	close(ended)
	breaker.Wait()
	ops := []store.Op{op}
	pgtest.Eventually(t, "the store is connected", func() bool { return store.Do(t.Context(), instances[0], store.Check, ops) == nil })
	if got := ops[0].Result.Used; got != callers*each {
		t.Errorf("got %d hits, want %d", got, callers*each)
	}
	t.Logf("%d calls failed, and %d found their record", failures.Load(), replays.Load())
}
