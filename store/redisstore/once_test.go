package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// TestLostAnswersCountOnce has connections broken in the middle of calls and of answers. A caller calls again, at
// another instance, until it has an answer.
func TestLostAnswersCountOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	proxy := redistest.Through(t, server)
	direct := openURL(t, "redis://"+server.Addr()+"?timeout=20s")
	through := []*redisstore.Store{openURL(t, "redis://"+proxy.Addr()+"?timeout=1s"), openURL(t, "redis://"+proxy.Addr()+"?timeout=1s")}
	limit := window.MustCompile(window.Limit{Quota: 1 << 30, Window: window.Sliding(time.Hour), Hold: time.Minute, MaxHolds: 10_000})
	kept := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(24 * time.Hour)})
	op := func() store.Op {
		return store.Op{Space: store.NewSpace("", "rule", "rule", 0), Limit: limit, Key: []byte("k"), N: 1}
	}
	proxy.Tear(0.1)
	const callers, each = 8, 25
	var all sync.WaitGroup
	var mu sync.Mutex
	replays, failures := 0, 0
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				for attempt := 0; ; attempt++ {
					calls := []store.Call{{Verb: store.Take, Ops: []store.Op{op()}, Once: &store.Op{
						Space: store.NewSpace("", "records", "records", 0), Limit: kept, Key: fmt.Append(nil, caller, "-", i),
						Member: make([]byte, 16), N: (10 * time.Minute).Microseconds(),
					}}}
					err := errors.Join(through[attempt%2].Do(t.Context(), calls), calls[0].Err)
					if err != nil {
						mu.Lock()
						failures++
						mu.Unlock()
						redistest.Eventually(t, "the store is connected", func() bool { return redisstore.Ready(through[(attempt+1)%2]) })
						continue
					}
					if calls[0].Once.Result.Before > 0 {
						mu.Lock()
						replays++
						mu.Unlock()
					}
					break
				}
			}
		})
	}
	all.Wait()
	proxy.Tear(0)
	ops := []store.Op{op()}

	if err := store.Do(t.Context(), direct, store.Check, ops); err != nil {
		t.Fatal(err)
	}
	if got := ops[0].Result.Used; got != callers*each {
		t.Errorf("got %d hits, want %d", got, callers*each)
	}
	t.Logf("%d calls failed, and %d found their record", failures, replays)
	if failures == 0 || replays == 0 {
		t.Errorf("got %d failed calls and %d records: no answer was lost", failures, replays)
	}
}

// TestReplayGivesNothingBack has a take again before the first one has given back what one slot counted and another
// denied. Only the first one gives it back.
func TestReplayGivesNothingBack(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	kept := window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(24 * time.Hour)})
	open, full := hourly(10, "open", keys[0]), hourly(0, "full", keys[1])
	open.Limit = window.MustCompile(window.Limit{Quota: 10, Window: window.Fixed(time.Hour)})
	take := func(ops ...store.Op) (*store.Op, []store.Op) {
		once := &store.Op{Space: store.NewSpace("", "records", "records", 0), Limit: kept, Key: []byte("k"), Member: make([]byte, 16), N: time.Minute.Microseconds()}
		calls := []store.Call{{Verb: store.Take, Ops: ops, Once: once}}
		if err := errors.Join(s.Do(t.Context(), calls), calls[0].Err); err != nil {
			t.Fatal(err)
		}
		return once, ops
	}
	take(open) // as the first one asks the slots
	take(full)
	if once, ops := take(open, full); once.Result.Before == 0 || allowed(ops) {
		t.Errorf("got record %+v, ops %+v, want the denial", once.Result, ops)
	}
	later, other := hourly(10, "later", keys[0]), hourly(10, "other", keys[2]) // rules that the first one did not meet
	if _, ops := take(open, later, other); !ops[0].Result.Allowed || ops[1].Result != (window.Result{}) || !ops[2].Result.Allowed {
		t.Errorf("with more rules: got ops %+v", ops)
	}
	for _, op := range []store.Op{open, other} {
		if got := used(t, s, op); got != 1 {
			t.Errorf("%s: got %d used, want 1", op.Space.Name(), got)
		}
	}
}
