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

// Many callers take keys on three nodes in one call each. The tightest quota
// is never passed, and in the end every key has counted exactly the calls that
// were admitted: what was denied has been given back.
func TestSlotsDecideTogether(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	ops := []store.Op{hourly(1000, "wide", keys[0]), hourly(200, "tight", keys[1]), hourly(1000, "wide", keys[2])}
	shadow := hourly(1000, "shadow", keys[2])
	shadow.Role = store.Shadow
	ops = append(ops, shadow)

	var admitted, denied atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			own := append([]store.Op(nil), ops...)
			for range 10 {
				if err := store.Do(context.Background(), s, store.Take, own); err != nil {
					t.Error(err)
					return
				}
				if allowed(own[:3]) {
					admitted.Add(1)
				} else {
					denied.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if got := admitted.Load(); got != 200 {
		t.Errorf("admitted: got %d, want 200", got)
	}
	for i, op := range ops[:3] {
		if got := used(t, s, op); got != 200 {
			t.Errorf("op %d: got %d used, want 200", i, got)
		}
	}
	if got := used(t, s, shadow); got != 640 {
		t.Errorf("shadow: got %d used, want 640, whatever the others said", got)
	}
}

// Only hits that were counted are given back, and only while they are in their
// window. In windows that are hardly longer than a round trip other calls count
// meanwhile, and keep their hits.
func TestGiveBackInTime(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	const length = 2 * time.Millisecond
	for name, w := range map[string]window.Window{"sliding": window.Sliding(length), "bucket": window.Bucket(length, 0)} {
		short, full := hourly(1, name, keys[0]), hourly(0, "full", keys[1])
		short.Limit = window.MustCompile(window.Limit{Quota: 1, Window: w})
		d := drive(t, s, 4, short, full) // denied by full, so short is given back
		var last time.Time
		for range 1000 {
			began, one := time.Now(), []store.Op{short}
			if err := store.Do(t.Context(), s, store.Take, one); err != nil {
				t.Fatal(err)
			}
			if !one[0].Result.Allowed {
				continue
			}
			if since := time.Since(last); since < length {
				t.Errorf("%s: two hits within %v, want %v between them", name, since, length)
			}
			last = began
		}
		d.end()
	}
}

// Hits that never leave their window are given back, too: they would stay counted forever.
func TestGiveBackForEver(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	ever, full := hourly(10, "ever", keys[0]), hourly(0, "full", keys[1])
	ever.Limit = window.MustCompile(window.Limit{Quota: 10, Window: window.Ever()})
	after := hourly(10, "after", keys[2])
	after.Limit = window.MustCompile(window.Limit{Quota: 10, Window: window.Sliding(time.Hour), After: window.After{Count: 1, Window: window.Ever()}})
	for range 3 {
		if err := store.Do(t.Context(), s, store.Take, []store.Op{ever, full, after}); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range []store.Op{ever, after} {
		if got := used(t, s, op); got != 0 {
			t.Errorf("%s: got %d used after denied takes, want 0", op.Space.Name(), got)
		}
	}
}

// With a dead shard only its own ops fail. What the others have counted for the
// call is given back.
func TestDeadShard(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=2s") // what the others have to answer in, on a busy machine
	connected(t, s, 3)
	keys := keysOn(c.Masters...)
	ops := []store.Op{hourly(10, "rule", keys[0]), hourly(10, "rule", keys[1]), hourly(10, "rule", keys[2])}
	always := hourly(10, "always", keys[0])
	always.Role = store.Always
	ops = append(ops, always)
	redistest.Eventually(t, "a call is answered", func() bool {
		return store.Do(t.Context(), s, store.Take, append([]store.Op(nil), ops...)) == nil
	})
	before := used(t, s, ops[0])
	c.Masters[1].Stop()
	defer c.Masters[1].Continue()
	for range 20 {
		err := store.Do(t.Context(), s, store.Take, ops)
		var out *store.OutageError
		if !errors.As(err, &out) || fmt.Sprint(out.Ops) != "[1]" {
			t.Fatalf("got error %v, want an outage of op 1", err)
		}
	}
	redistest.Eventually(t, "all is given back", func() bool {
		return used(t, s, ops[0]) == before && used(t, s, ops[2]) == before && used(t, s, always) == before
	})
}

// Nodes stand still again and again while calls take keys on all of them. Hits
// whose answer was lost are never given back, so that the quota holds.
func TestQuotaHoldsThroughOutages(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, clusterURL(c))
	keys := keysOn(c.Masters...)
	var ops []store.Op
	for _, key := range keys {
		ops = append(ops, hourly(1000, "rule", key))
	}
	d := drive(t, s, 16, ops...)
	for i := range 6 {
		d.answers(50)
		n := c.Masters[i%3]
		n.Stop()
		d.fails(100)
		n.Continue()
	}
	redistest.Eventually(t, "the quota is used up", func() bool { return d.denied.Load() > 100 })
	d.end()
	for i, op := range ops {
		if got := used(t, s, op); got > 1000 || got < d.admitted.Load() {
			t.Errorf("node %d: got %d used, want from the %d admitted to 1000", i, got, d.admitted.Load())
		}
	}
	if got := d.admitted.Load(); got > 1000 {
		t.Errorf("admitted: got %d, want 1000 at most", got)
	}
}

// With wait_replicas a call is an outage unless a replica confirms it.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	replica := primary.Replica()
	s := openURL(t, "redis://"+primary.Addr()+"?timeout=1s&wait_replicas=1") // a server ends a WAIT up to 100 ms late
	op := hourly(quota, "rule", "k")
	if !take(t, s, op) {
		t.Fatal("got denied, want admitted")
	}
	if got := replica.Info("db0"); got == "" {
		t.Error("the replica has no key, want the one that was confirmed")
	}
	// Calls that share a connection confirm each other.
	patient := openURL(t, "redis://"+primary.Addr()+"?timeout=20s&wait_replicas=1")
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			if err := store.Do(context.Background(), patient, store.Take, []store.Op{op}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	replica.Stop()
	wantIn(t, outage(t, s, store.Take, op), "replicas")
	used(t, s, op) // a check needs no replica
	replica.Continue()
	redistest.Eventually(t, "the replica confirms", func() bool {
		return store.Do(context.Background(), s, store.Take, []store.Op{op}) == nil
	})
}

// A caller in a hurry, who is first in line, takes no time away from those in its
// flush: the replicas may confirm their calls as late as these can wait.
func TestWaitReplicasForAFlush(t *testing.T) {
	t.Parallel()
	primary := redistest.Server(t)
	replica := primary.Replica()
	s := openURL(t, "redis://"+primary.Addr()+"?timeout=20s&wait_replicas=1")
	op := hourly(quota, "rule", "k")
	used(t, s, op)
	var callers sync.WaitGroup
	call := func(timeout time.Duration, answered bool) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		callers.Go(func() {
			defer cancel()
			if err := store.Do(ctx, s, store.Take, []store.Op{op}); (err == nil) != answered {
				t.Errorf("a call with %v: got error %v, want an answer: %t", timeout, err, answered)
			}
		})
	}
	inFlight := func(n int64) {
		t.Helper()
		redistest.Eventually(t, "calls are under way", func() bool { return s.Nodes()[0].InFlight == n })
	}
	replica.Stop()
	call(500*time.Millisecond, false) // these two wait for replicas
	call(500*time.Millisecond, false)
	inFlight(2)
	call(time.Second, false)
	inFlight(3)
	for range 5 {
		call(time.Minute, true)
	}
	inFlight(8)
	inFlight(5) // the impatient ones have left
	call(time.Second, false)
	inFlight(6)
	inFlight(5) // a second has passed
	replica.Continue()
	callers.Wait()
}

// Close returns although no node answers. It takes a second, since it waits for all
// nodes at the same time.
func TestCloseWithDeadShards(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, clusterURL(c))
	keys := keysOn(c.Masters...)
	ops := []store.Op{hourly(10, "rule", keys[0]), hourly(10, "rule", keys[1]), hourly(10, "rule", keys[2])}
	redistest.Eventually(t, "a call is answered", func() bool {
		return store.Do(t.Context(), s, store.Take, append([]store.Op(nil), ops...)) == nil
	})
	for _, n := range c.Masters {
		n.Stop()
		t.Cleanup(n.Continue)
	}
	_ = store.Do(t.Context(), s, store.Take, ops)
	clock := redistest.Clock(t)
	s.Close()
	if took := clock(); took > 10*time.Second {
		t.Errorf("closing took %v, want about a second", took)
	}
}

// Giving back may take as long as a decision: a node that stands still for longer than a second,
// and for less than the time-out, keeps no hits of a denied take.
func TestGiveBackTakesTheTimeOut(t *testing.T) {
	t.Parallel()
	c, s, keys := onCluster(t, 2)
	admits, denies := hourly(10, "rule", keys[0]), hourly(0, "rule", keys[1])
	c.Masters[1].Stop()
	taken := make(chan error, 1)
	go func() { taken <- store.Do(t.Context(), s, store.Take, []store.Op{admits, denies}) }()
	redistest.Eventually(t, "the first node counts", func() bool { return used(t, s, admits) == 1 })
	c.Masters[0].Pause(1500 * time.Millisecond)
	c.Masters[1].Continue()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if got := used(t, s, admits); got != 0 {
		t.Errorf("used: got %d, want 0", got)
	}
}

// A store on a caller's client gives hits back after their call has ended. Close
// waits for that.
func TestCloseWaitsForGivingBack(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 2, 0)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: strings.Split(c.Addrs(), ","), DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := redisstore.New(client, "")
	keys := keysOn(c.Masters...)
	first, second := hourly(10, "rule", keys[0]), hourly(10, "rule", keys[1])
	for _, op := range []store.Op{first, second} {
		if err := store.Do(t.Context(), s, store.Record, []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	// The second node does not answer. The first one has counted, and stands still
	// when it is to give back.
	c.Masters[1].Stop()
	defer c.Masters[1].Continue()
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error)
	go func() { taken <- store.Do(ctx, s, store.Take, []store.Op{first, second}) }()
	redistest.Eventually(t, "the first node counts", func() bool { return used(t, s, first) == 2 })
	c.Masters[0].Stop()
	cancel()
	if err := <-taken; err == nil {
		t.Error("got an answer, want none")
	}
	var goesOn atomic.Bool
	time.AfterFunc(200*time.Millisecond, func() { goesOn.Store(true); c.Masters[0].Continue() })
	s.Close()
	if !goesOn.Load() {
		t.Error("Close has not waited")
	}
	if got := used(t, redisstore.New(client, ""), first); got != 1 {
		t.Errorf("used: got %d, want 1", got)
	}
}

// A take up to what fits counts the same number of hits in all slots.
func TestUpToInSeveralSlots(t *testing.T) {
	t.Parallel()
	_, s, keys := onCluster(t, 3)
	ops := []store.Op{hourly(100, "wide", keys[0]), hourly(7, "tight", keys[1]), hourly(100, "wide", keys[2])}
	for _, want := range []int64{5, 2, 1} {
		for i := range ops {
			ops[i].N, ops[i].UpTo = 5, true
		}
		if err := store.Do(t.Context(), s, store.Take, ops); err != nil {
			t.Fatal(err)
		}
		for i := range ops {
			if ops[i].N != want || !ops[i].UpTo {
				t.Errorf("op %d: got %d hits, want %d", i, ops[i].N, want)
			}
		}
	}
	for i, op := range ops {
		if got := used(t, s, op); got != 7 {
			t.Errorf("op %d: got %d used, want 7", i, got)
		}
	}
	if ops[1].Result.Allowed || !ops[0].Result.Allowed {
		t.Errorf("the last take: got %+v, want it denied by one op", ops)
	}
}
