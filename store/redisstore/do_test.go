package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// takes returns n calls that take a hit of op, each with its own key.
func takes(n int, op store.Op) []store.Call {
	calls := make([]store.Call, n)
	for i := range calls {
		own := op
		own.Key = fmt.Append(nil, "key", i)
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{own}}
	}
	return calls
}

// do runs calls, and returns how many have an error.
func do(t *testing.T, s store.Store, calls []store.Call) (outages int) {
	t.Helper()
	if err := s.Do(context.Background(), calls); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if calls[i].Err != nil {
			outages++
		}
	}
	return outages
}

// Calls in one batch that share a key are decided in their order.
func TestBatchKeepsOrder(t *testing.T) {
	t.Parallel()
	_, cluster, _ := onCluster(t, 3)
	for name, s := range map[string]store.Store{
		"server":  redisstore.New(connect(t, redistest.Server(t).Addr()), ""),
		"cluster": cluster,
	} {
		const keys = 40
		var calls []store.Call
		for i := range 10 * keys {
			op := hourly(1000, "rule", fmt.Sprint(i%keys))
			op.N = 1 + int64(i/keys)
			calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{op}})
		}
		used(t, s, hourly(1, "other", "loads the script")) // the first calls may be sent again
		do(t, s, calls[:keys])
		calls = calls[keys:]
		if got := do(t, s, calls); got != 0 {
			t.Fatalf("%s: got %d outages, want none; the first: %v", name, got, calls[0].Err)
		}
		for i := range calls {
			n := calls[i].Ops[0].N
			if got, want := calls[i].Ops[0].Result.Used, n*(n+1)/2; got != want {
				t.Errorf("%s: call %d: got %d used, want %d", name, i, got, want)
			}
		}
	}
}

// A call of a batch that fails does not affect the others.
func TestBatchWithFaults(t *testing.T) {
	t.Parallel()
	c := connect(t, redistest.Server(t).Addr())
	s := redisstore.New(c, "")
	calls := takes(300, hourly(10, "rule", ""))
	foreign, broken, twice, none := &calls[7], &calls[150], &calls[151], &calls[299]
	for key, text := range map[string]string{
		redisstore.KeyName("weir", &foreign.Ops[0]): "",
		redisstore.KeyName("weir", &broken.Ops[0]):  "not a state",
	} {
		set := c.B().Set().Key(key).Value(text).Build()
		if text == "" {
			set = c.B().Rpush().Key(key).Element("1").Build()
		}
		if err := c.Do(t.Context(), set).Error(); err != nil {
			t.Fatal(err)
		}
	}
	twice.Ops = append(twice.Ops, twice.Ops[0])
	none.Ops = nil
	calls[8].Err = errors.New("left over")
	do(t, s, calls)
	for _, bad := range []*store.Call{foreign, broken} {
		var outage *store.OutageError
		if key := redisstore.KeyName("weir", &bad.Ops[0]); !errors.As(bad.Err, &outage) || !strings.Contains(bad.Err.Error(), key) {
			t.Errorf("got error %v, want an outage that names %s", bad.Err, key)
		}
		bad.Err = nil
	}
	if !errors.Is(twice.Err, store.ErrRepeated) {
		t.Errorf("two ops on one key: got error %v, want %v", twice.Err, store.ErrRepeated)
	}
	twice.Err, foreign.Ops, broken.Ops, twice.Ops = nil, nil, nil, nil
	for i := range calls {
		if call := &calls[i]; call.Err != nil || len(call.Ops) > 0 && call.Ops[0].Result.Used != 1 {
			t.Errorf("call %d: got %+v, want one used", i, call)
		}
	}
}

// A server that has lost its scripts gets each text once, and all calls count
// once.
func TestBatchLoadsScripts(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	c := connect(t, n.Addr())
	s := redisstore.New(c, "")
	cells := hourly(10, "cells", "")
	cells.Limit = window.MustCompile(window.Limit{Quota: 10, Window: window.Cells(time.Hour, 6)})
	calls := append(takes(50, hourly(10, "rule", "")), takes(50, cells)...)
	for want := range int64(3) {
		if got := do(t, s, calls); got != 0 {
			t.Fatalf("got %d outages, first %v, want none", got, calls[0].Err)
		}
		for i := range calls {
			if got := calls[i].Ops[0].Result.Used; got != want+1 {
				t.Errorf("call %d: got %d used, want %d", i, got, want+1)
			}
		}
		n.Must("SCRIPT", "FLUSH")
	}
	if got := n.Info("cmdstat_eval"); !strings.HasPrefix(got, "calls=6,") {
		t.Errorf("EVAL: got %s, want a call for each of two scripts, three times", got)
	}
}

// On a cluster calls are sent by node, and those with keys in several slots are
// decided as one: none of their limits is passed, and none is charged by itself.
func TestBatchOnCluster(t *testing.T) {
	t.Parallel()
	c, url, _ := onCluster(t, 3)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Masters[0].Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for name, s := range map[string]store.Store{"url": url, "the caller's client": redisstore.New(client, "own")} {
		calls := takes(100, hourly(10, "rule", ""))
		for i := range 20 { // ten of them fit
			a, b := hourly(10, "shared", "all"), hourly(10, "own", fmt.Sprint(i))
			calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{a, b}})
		}
		if got := do(t, s, calls); got != 0 {
			t.Fatalf("%s: got %d outages, want none; the first: %v", name, got, calls[0].Err)
		}
		for i := range 100 {
			if got := calls[i].Ops[0].Result.Used; got != 1 {
				t.Errorf("%s: call %d: got %d used, want 1", name, i, got)
			}
		}
		admitted := int64(0)
		for i := range 20 {
			ops := calls[100+i].Ops
			want := int64(0)
			if ops[0].Result.Allowed && ops[1].Result.Allowed {
				admitted++
				want = 1
			}
			if got := used(t, s, hourly(10, "own", fmt.Sprint(i))); got != want {
				t.Errorf("%s: call %d next to the shared key: got %d used, want %d", name, i, got, want)
			}
		}
		if got := used(t, s, hourly(10, "shared", "all")); got != admitted || got == 0 {
			t.Errorf("%s: got %d used of the shared key, want the %d admitted, and some", name, got, admitted)
		}
	}
}

// A slot moves from node to node while batches are counted: no hit is lost, and
// none is counted twice.
func TestBatchWhileSlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, clusterURL(c))
	slot := redisstore.SlotOf([]byte("{k}"))
	var calls []store.Call
	for i := range 60 {
		op := hourly(quota, fmt.Sprint("rule", i), "k")
		if i%2 == 1 {
			op = hourly(quota, "rule", fmt.Sprint("elsewhere", i))
		}
		calls = append(calls, store.Call{Verb: store.Take, Ops: []store.Op{op}})
	}
	for range 20 { // that the slot has keys to move, and all nodes are connected
		do(t, s, calls)
	}
	before := make([]int64, len(calls))
	for i := range calls {
		before[i] = used(t, s, calls[i].Ops[0])
	}
	admitted, outages := make([]atomic.Int64, len(calls)), make([]atomic.Int64, len(calls))
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	var rounds atomic.Int64
	for range 2 {
		callers.Go(func() {
			own := make([]store.Call, len(calls))
			for i := range own {
				own[i] = store.Call{Verb: store.Take, Ops: append([]store.Op(nil), calls[i].Ops...)}
			}
			for ctx.Err() == nil {
				if err := s.Do(context.Background(), own); err != nil {
					t.Error(err)
				}
				for i := range own {
					if own[i].Err == nil {
						admitted[i].Add(1)
					} else {
						outages[i].Add(1)
					}
				}
				rounds.Add(1)
			}
		})
	}
	for i := range 6 {
		c.Move(slot, c.Masters[i%3])
		n := rounds.Load()
		redistest.Eventually(t, "batches are decided", func() bool { return rounds.Load() > n+10 })
	}
	cancel()
	callers.Wait()
	var met int64
	for i := range calls {
		got, want := used(t, s, calls[i].Ops[0])-before[i], admitted[i].Load()
		if got < want || got > want+outages[i].Load() {
			t.Errorf("call %d: got %d counted, want the %d admitted and at most %d outages", i, got, want, outages[i].Load())
		}
		met += outages[i].Load()
	}
	t.Logf("%d batches of %d calls, %d outages", rounds.Load(), len(calls), met)
}

// The calls of slices count in the bound of calls in flight: with room for one a
// batch goes out call by call.
func TestBatchInFlight(t *testing.T) {
	t.Parallel()
	s := openURL(t, "redis://"+redistest.Server(t).Addr()+"?timeout=20s&in_flight=1")
	if got := do(t, s, takes(50, hourly(10, "rule", ""))); got != 0 {
		t.Errorf("got %d outages, want none", got)
	}
}

// With wait_replicas the counting calls of a slice are outages when no replica
// confirms. Checks and denials are not.
func TestBatchWaitsForReplicas(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	s := openURL(t, "redis://"+primary.Addr()+"?timeout=1s&wait_replicas=1")
	calls := takes(20, hourly(10, "rule", ""))
	calls[3].Verb = store.Check
	calls[5].Ops[0].N = 11
	used(t, s, calls[0].Ops[0]) // loads the script, so that the calls are sent once
	if got := do(t, s, calls); got != len(calls)-2 || calls[3].Err != nil || calls[5].Err != nil || calls[5].Ops[0].Result.Allowed {
		t.Errorf("without a replica: got %d outages, a check with %v, a denial with %v; want all but these two", got, calls[3].Err, calls[5].Err)
	}
	var out *store.OutageError
	if !errors.As(calls[0].Err, &out) || out.Reason != "unconfirmed" || out.Uncounted {
		t.Errorf("without a replica: got %+v, want it unconfirmed", calls[0].Err)
	}
	if got := used(t, s, calls[0].Ops[0]); got != 1 {
		t.Errorf("without a replica: got %d used, want 1", got)
	}
	primary.Replica()
	redistest.Eventually(t, "the replica confirms", func() bool { return do(t, s, calls) == 0 })
}

// A call that the server has counted is unconfirmed, and not late, also when the server ends its wait for replicas late.
func TestUnconfirmedIsNotLate(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("CONFIG", "SET", "hz", "1") // it ends a wait up to a second late
	s := openURL(t, "redis://"+n.Addr()+"?timeout=400ms&wait_replicas=1")
	for range 2 {
		op := hourly(10, "rule", "k")
		var out *store.OutageError
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); !errors.As(err, &out) || out.Reason != "unconfirmed" {
			t.Errorf("got %v, want it unconfirmed", err)
		}
	}
}

// With more callers than connections that wait for replicas, a call that fails as late was not counted: it has waited here,
// and not behind another one's wait for replicas.
func TestCallsWaitForReplicasOnlyOnce(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("CONFIG", "SET", "hz", "1")
	s := openURL(t, "redis://"+n.Addr()+"?timeout=400ms&wait_replicas=1")
	op := hourly(1000, "rule", "k")
	var unconfirmed atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 4 {
				var out *store.OutageError
				if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); !errors.As(err, &out) {
					t.Errorf("got error %v, want an outage", err)
				} else if out.Reason == "unconfirmed" {
					unconfirmed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if got, want := used(t, s, op), unconfirmed.Load(); got < want || got > want+want/4 || want == 0 {
		t.Errorf("got %d used, want the %d unconfirmed calls, and rarely one more", got, want)
	}
}

// Hits are given back without waiting for replicas.
func TestGivingBackNeedsNoReplicas(t *testing.T) {
	t.Parallel()
	s := openURL(t, "redis://"+redistest.Server(t).Addr()+"?timeout=1s&wait_replicas=1")
	hits := holdOf(hourly(10, "rule", "k"), 1)
	held := holdOf(opUnder(window.Limit{Quota: 10, Window: window.Sliding(time.Hour), Hold: time.Hour}, "held"), 1)
	for v, op := range map[store.Verb]store.Op{store.Refund: hits, store.Cancel: hits, store.Settle: held} {
		ops := []store.Op{op}
		if err := store.Do(t.Context(), s, store.Take, ops); err == nil {
			t.Error("take: got no error, want it unconfirmed")
		}
		if got := ops[0].Result; !got.Allowed || got.Used != 1 || ops[0].Hold.Decided == 0 {
			t.Errorf("take: got %+v, want what was counted", got)
		}
		ops[0].Hold.At, ops[0].Hold.Sure = ops[0].Hold.Decided, true
		if v == store.Settle {
			ops[0].N = 0
		}
		if err := store.Do(t.Context(), s, v, ops); err != nil {
			t.Error(err)
		}
		if got := used(t, s, op); got != 0 {
			t.Errorf("%v: got %d used, want 0", v, got)
		}
	}
}

// A batch on a server that hangs waits for one time-out, not for one each slice. All calls are outages, and
// nothing is counted.
func TestBatchWaitsInVainOnce(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=4s")
	calls := takes(1000, hourly(10, "rule", ""))
	n.Stop()
	clock := redistest.Clock(t)
	if got := do(t, s, calls); got != len(calls) {
		t.Errorf("got %d outages, want all %d", got, len(calls))
	}
	if took := clock(); took > 6*time.Second {
		t.Errorf("the batch took %v, want 4s", took)
	}
	if got := s.Nodes()[0]; got.InFlight != 0 || outages(got) < int64(len(calls)) {
		t.Errorf("got %+v, want nothing in flight and all calls as outages", got)
	}
	n.Continue()
	for _, i := range []int{0, 500, 999} {
		if got := used(t, s, calls[i].Ops[0]); got != 0 {
			t.Errorf("call %d: got %d used, want 0", i, got)
		}
	}
}
